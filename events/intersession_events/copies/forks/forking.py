"""Makes a fork: a new file with a part of a log, and the event that says so. The log itself is only read (FORK-1, FORK-2)."""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from intersession_events.basics import ids
from intersession_events.basics.errors import ForkFailed
from intersession_events.basics.machine import machine_entropy
from intersession_events.copies.forks.confirming import confirm
from intersession_events.copies.forks.files import directory_of, fork_path
from intersession_events.copies.forks.prefix import STREAM, prefix_of
from intersession_events.copies.forks.proving import heads_proven
from intersession_events.facts import Erased, Event, ForkedFrom, ForkEdit, decode
from intersession_events.log.envelope import FIRST, SALT_BYTES, seal
from intersession_events.log.erasing import erased_stream
from intersession_events.log.recorded import Draft
from intersession_events.log.row_state import opened, payload_in
from intersession_events.log.sql import Query, Row
from intersession_events.log.storable import payload_of
from intersession_events.log.tables import FORMAT
from intersession_events.stores.database import MEMORY
from intersession_events.stores.portable.filling import Moved
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.sqlite.filling import FileFilling

Fill = Callable[[sqlite3.Connection], None]
"""Puts more into the file of a fork that is being made, such as views."""


class ForkWanted(NamedTuple):
    """The parts that a fork will have.

    `streams` are taken whole, up to the position `at`: it is for the caller that nothing in them refers to anything outside.
    `flow` is the run, exchange or spawn that goes on, `edits` what was changed, `by` the caller.
    """

    streams: Collection[str]
    at: int
    flow: str
    edits: Sequence[ForkEdit] = ()
    by: str = "operator"


class Fork(NamedTuple):
    """A fork that was made: its log id, its file, and its first own event."""

    id: str
    path: str
    forked: ForkedFrom


def fork_log(
    log: PortableLog,
    wanted: ForkWanted,
    *,
    directory: Path | None = None,
    fork_id: str,
    now_ms: int,
    entropy: Callable[[int], bytes] = machine_entropy,
    fill: Fill = lambda _: None,
) -> Fork:
    """Copy a part of a log into a log of its own, a file in a directory: one that is made if missing, or the folder of the log's forks.

    It is there under its name only when it is whole. `fill` can put views there; opening the fork folds missing ones.

    Raises:
        ForkFailed: the position is not in the log, the file can't be written, or a log in memory has no directory.
        CorruptEvent: a row that is needed can't be read, or was changed since it was written: what a fork begins with has to be
            proven. It names the position; `verify` says more.
        StoreUnavailable: the log can't be read.
    """
    if directory is None and log.place == MEMORY:
        raise ForkFailed("a log in memory has no place beside it: give the directory for its forks")
    with log.stored() as seen:
        ((head,),) = seen("SELECT COALESCE(MAX(rowid), 0) FROM stored_events", ())
        ((log_format,),) = seen("SELECT format FROM log_identity", ())
        if not 0 <= wanted.at <= head:
            raise ForkFailed(f"position {wanted.at} is not in {log.path}: its last one is {head}")
        if log_format != FORMAT:
            raise ForkFailed(
                f"{log.path} has format {log_format}, which this version does not know: take a newer one"
            )
        prefix = prefix_of(seen, wanted.streams, wanted.at)
        erased = list(erased_later(seen, [(row[1], row[2]) for row in prefix.heads], wanted.at))
        confirm(prefix.rows, log.lineage, erased)
        proven = heads_proven(seen, prefix.heads)
    named = prefix.named
    forked = ForkedFrom(
        log_id=log.lineage.log_id_at(wanted.at),
        position=wanted.at,
        flow=wanted.flow,
        heads=named,
        edits=tuple(wanted.edits),
        by=wanted.by,
        checkpoints=proven.checkpoints,
        proofs=proven.proofs,
    )
    last = opened(prefix.rows[-1][4], where="a row") if prefix.rows else None
    epochs = (opened(row[4], where=f"position {row[0]}") for row in prefix.heads)
    own = OwnRows(
        fork_id,
        epoch=1 + max((head.epoch for head in epochs), default=0),
        time=max(now_ms, 0 if last is None else last.time),
        entropy=entropy,
    )
    for stream, version, hashed in named:
        own.follows(stream, version, hashed)
    rows = [*prefix.rows, own.row(STREAM, forked, at=wanted.at + 1)]
    rows += [
        own.row(erased_stream(event.stream), event, at=wanted.at + 2 + n) for n, event in enumerate(erased)
    ]
    directory = directory or directory_of(log.place)
    path = fork_path(directory, fork_id)
    made = Moved(fork_id, own.epoch, now_ms, rows[-1][0], {row[3] for row in rows}, log.keys)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with closing(FileFilling(path, anew=True)) as file:
            file.begin(made)
            # In the order of their places: each row goes behind the one before it.
            file.put(sorted(rows, key=itemgetter(0)), after=0)
            with file.writing() as views:
                fill(views)
            file.finish()
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ForkFailed(
            f"{path} can't be written ({why}): make room in {directory}, or copy the log to another place and fork it there"
        ) from error
    return Fork(fork_id, str(path), forked)


_ERASED = "SELECT topic, state FROM stored_events WHERE originator_id BETWEEN 'erased:' AND 'erased;' AND rowid>? ORDER BY rowid"
_ERASED_OF_LOG = (
    "SELECT topic, state FROM stored_events WHERE originator_id=? AND rowid<=? ORDER BY originator_version"
)


class OwnRows:
    """Makes rows of the fork's own events."""

    def __init__(self, log_id: str, *, epoch: int, time: int, entropy: Callable[[int], bytes]) -> None:
        self.epoch = epoch
        self._log_id = log_id
        self._time = time
        self._entropy = entropy
        self._last: dict[str, tuple[int, str]] = {}

    def follows(self, stream: str, version: int, hashed: str) -> None:
        """Let what comes next in a stream follow an event."""
        self._last[stream] = (version, hashed)

    def row(self, stream: str, event: Event, *, at: int) -> Row:
        """Return an event as it is stored at a position."""
        draft = Draft(event=event, id=ids.derive(self._log_id, "fork", at), time=self._time)
        topic, payload = payload_of(draft)
        version, prev = self._last.get(stream, (0, FIRST))
        state, recorded = seal(
            draft,
            topic,
            payload,
            log_id=self._log_id,
            stream=stream,
            version=version + 1,
            epoch=self.epoch,
            prev=prev,
            salt=self._entropy(SALT_BYTES),
        )
        self._last[stream] = (version + 1, recorded.hash)
        return at, stream, version + 1, topic, state


def erased_later(seen: Query, ends: Collection[tuple[str, int]], at: int) -> Iterator[Erased]:
    """Yield a fork's own authorisations for texts that were erased in the log after the position, of streams up to their `ends`.

    Of stream `log` only some events go along, each an end, and so nothing of what was erased in it, whenever that was.
    """
    last = dict(ends)
    of_log = {version for stream, version in ends if stream == STREAM}
    for topic, state in (*seen(_ERASED, (at,)), *seen(_ERASED_OF_LOG, (erased_stream(STREAM), at))):
        event = decode(topic, payload_in(state) or b"")
        if not isinstance(event, Erased):
            continue
        if event.stream == STREAM:
            kept = tuple(row for row in event.rows if row[0] in of_log)
        else:
            kept = tuple(row for row in event.rows if row[0] <= last.get(event.stream, 0))
        if kept:
            yield Erased(
                stream=event.stream, rows=kept, by=event.by, reason=event.reason, thinking=event.thinking
            )
