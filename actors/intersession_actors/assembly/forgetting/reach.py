"""What an erasure does not reach, in words: copies of the log, and what was given to others (ERASE-1, FORGET-3)."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from intersession_actors.calls.service.service import Service
from intersession_events.basics.errors import LogError
from intersession_events.facts import AccessRecorded
from intersession_events.stores.database import MEMORY
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.copies.transcripts.files import mirror_directory
from intersession_projections.views.access_receipts import Wanted, receipts

_MOST: Final = 20
_LOOKED_AT: Final = 200
_MAGIC: Final = b"SQLite format 3\0"
_TAKEN_OUT: Final = ("bundles.make", "exports.make", "file")


def beyond_reach(service: Service, told_to: Collection[str], in_copies: Sequence[str] = ()) -> Iterator[str]:
    """Yield what an erasure in a log does not reach. `told_to` are the channels and models that were given the words.

    `in_copies` are the streams of an encrypted log of which backups keep words, though keys are destroyed.
    """
    log = service.log
    if log.is_encrypted:
        yield "exports of the log, and copies of its keys"
        if in_copies:
            more = f" and {len(in_copies) - _MOST} more" if len(in_copies) > _MOST else ""
            yield (
                f"in backups, what was said in {', '.join(in_copies[:_MOST])}{more}: other words have the same keys, or none"
            )
        if (mirrored := mirror_directory(log, wanted=True)) is not None and mirrored.exists():
            yield f"transcripts of before it was encrypted, delete them: {mirrored}"
    else:
        yield "backups, exports and copies of the log"
    if not log.is_remote and (copies := [name for name, _ in copies_beside(log.place, log.log_id)]):
        yield f"copies of the log in its folder, continue (`intersession backup`) or delete them: {', '.join(copies)}"
    if taken := [*islice(_taken_out(service), _MOST)]:
        yield f"bundles and exports that receipts say were made: {', '.join(taken)}"
    if told_to:
        yield f"what was given to others: {', '.join(sorted(told_to))}"
    yield "log lines of the host"
    if log.is_remote and (in_copies or not log.is_encrypted):
        yield "the database's write-ahead log, what was archived of it, replicas that are behind, and backups"


def copies_beside(place: str, log_id: str) -> Iterator[tuple[str, PortableLog]]:
    """Yield other databases in the folder of a log that are the same log: the name of each, and itself, open for that long."""
    if place == MEMORY:
        return
    own = Path(place)
    for file in islice(sorted(own.parent.iterdir()), _LOOKED_AT):
        try:
            if file == own or not file.is_file():
                continue
            with file.open("rb") as opened:
                if opened.read(len(_MAGIC)) != _MAGIC:
                    continue
            with open_log(str(file), read_only=True) as other:
                if other.log_id == log_id:
                    yield file.name, other
        except (LogError, OSError):
            continue


def _taken_out(service: Service) -> Iterator[str]:
    for receipt in receipts(service.log, Wanted()):
        if isinstance(receipt.event, AccessRecorded) and receipt.event.tool in _TAKEN_OUT:
            yield f"by {receipt.who} (#{receipt.position})"
