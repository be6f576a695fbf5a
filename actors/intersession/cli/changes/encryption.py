"""`intersession encryption`: how a log's words are kept encrypted, and another master key for them."""

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from cyclopts import App, Parameter

from intersession.cli.host.reading import reading_log, store_url
from intersession.cli.shell.answer import (
    COMMON,
    NOT_VERIFIED,
    OK,
    READING,
    Answer,
    Common,
    Reading,
    UsageError,
)
from intersession.cli.shell.terminal import Screen, safe
from intersession_actors.assembly.forgetting.reach import copies_beside
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_events.basics.errors import LogError
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.encrypting import encrypted_in_place
from intersession_events.copies.forks.files import forks_beside
from intersession_events.facts.reasons import counted
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.database import MEMORY
from intersession_events.stores.keys.keyring import Keyring, clear_from
from intersession_events.stores.keys.source import Encryption, Source, of_environment
from intersession_events.stores.opened import check_clear, open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.copies.transcripts.files import mirror_directory
from intersession_projections.views.full_text.index import FullText

encryption = App(name="encryption", help="How words are kept encrypted (extra `encrypt`).")


@encryption.command
def show(*, common: Common = COMMON) -> Answer:
    """Show whether a log is kept encrypted: where its keys are, how many there are, and where its master key is."""
    with reading_log(common) as log:
        if log.keys is None:
            check_clear(log)
        value: JsonObject = (
            {"encrypted": False} if log.keys is None else _standing(log.keys, log.clear_from())
        )

    def shown(screen: Screen) -> None:
        if not value["encrypted"]:
            screen.line("it is not kept encrypted: name encryption.keys in the configuration of its host")
            return
        sessions = value["sessions"]
        screen.line(
            f"kept encrypted: {'all sessions' if sessions == 'all' else ', '.join(map(str, sessions))}"
        )
        screen.line(f"  {value['keys']} keys in {value['file']}, {value['destroyed']} destroyed")
        screen.line(f"  the master key: {value['masterKey'] or value['trouble']}")
        if value["clearFrom"] is not None:
            screen.line(
                f"  words of before are in clear, from #{value['clearFrom']} on: stop the host, and run `intersession encryption apply`"
            )

    return Answer(value, shown)


@encryption.command
def apply(*, reading: Reading = READING) -> Answer:
    """Encrypt what a log has in clear: what was written before it was kept encrypted, its files, and its forks.

    Rows are replaced where they stand, with the same hashes, a page in each transaction; after a kill run it again. At the end
    the database is written anew and verified. While a host writes to the log this is refused.

    The master key is that of encryption.keys in the configuration, or of $INTERSESSION_KEYS.
    """
    config = load_config(reading.config).config
    url = store_url(reading, config)
    with open_log(url, read_only=True) as log:  # a log that is not there is not made
        check_clear(log)
        source = of_environment(os.environ)
        wanted = config.encryption.wanted or (None if source is None else Encryption(source))
        if wanted is None and log.keys is None:
            raise UsageError("name the master key as encryption.keys in the file of --config")
        shown, forks = log.path, [] if log.place == MEMORY else forks_beside(log.place)
    done = _applied(url, wanted)
    left = [*done.left]
    for file in forks:
        try:
            fork = _applied(str(file), wanted)
        except (LogError, OSError) as error:
            left.append(f"the fork {file}: {error}")
            continue
        done = done.with_fork(fork)
        left += [f"in the fork {file}: {said}" for said in fork.left]
    value: JsonObject = {
        "ok": done.ok,
        "store": shown,
        "payloads": done.payloads,
        "files": done.files,
        "forks": done.forks,
        "notReached": [*left, *_BEYOND],
    }

    def said(screen: Screen) -> None:
        counts = f"{counted(done.payloads, 'payload')}, {counted(done.files, 'file')}"
        beside = f", and {counted(done.forks, 'fork')} beside it" if done.forks else ""
        screen.line(safe("encrypted: ", "bold green"), f"{counts} of {shown}{beside}")
        if not done.ok:
            screen.line(
                safe("NOT verified: ", "bold red"), "run `intersession verify`, which says what was changed"
            )
        screen.line("Words are still in clear in:")
        for one in (*left, *_BEYOND):
            screen.line(f"  {one}")

    return Answer(value, said, OK if done.ok else NOT_VERIFIED)


class _Applied(NamedTuple):
    payloads: int
    files: int
    left: Sequence[str]
    ok: bool
    forks: int = 0

    def with_fork(self, fork: "_Applied") -> "_Applied":
        """Return the sums with a fork's."""
        return self._replace(
            payloads=self.payloads + fork.payloads,
            files=self.files + fork.files,
            ok=self.ok and fork.ok,
            forks=self.forks + 1,
        )


_BEYOND: Final = (
    "backups, copies, exports and bundles that were made before",
    "free blocks of the disk, and snapshots of it",
)


def _applied(url: str | None, wanted: Encryption | None) -> _Applied:
    with open_log(url, encryption=wanted) as log:
        with Screen().progress("Encrypting") as progress:
            payloads, files = encrypted_in_place(log, progress)
        left = [*FullText(log, redact_raw).forget(), *log.let_go(anew=True)]
        if log.is_remote:
            left.append(
                "the database's write-ahead log, what was archived of it, and replicas that are behind"
            )
        if (mirrored := mirror_directory(log, wanted=True)) is not None and mirrored.exists():
            left.append(f"transcripts, delete them: {mirrored}")
        if not log.is_remote and (copies := [*_copies_in_clear(log)]):
            left.append(f"copies of the log in its folder, delete them: {', '.join(copies)}")
        with Screen().progress("Verifying") as progress:
            return _Applied(payloads, files, left, verify_log(log, progress=progress).ok)


def _copies_in_clear(log: PortableLog) -> Iterator[str]:
    """Yield the names of copies in its folder with words that are encrypted here: continued, they would keep their rows."""
    for name, copy in copies_beside(log.place, log.log_id):
        # A copy is encrypted by the keys of its log, and seldom has a file of them beside it.
        keys = copy.keys or log.keys
        if keys is not None and clear_from(keys, copy.query) is not None:
            yield name


@encryption.command
def rotate(
    *,
    file: Annotated[Path | None, Parameter(help="The file of the new master key.")] = None,
    keyring: Annotated[str | None, Parameter(help="The service of the keyring that has the new one.")] = None,
    command: Annotated[
        str | None, Parameter(help="The command that prints the new one, as a shell has it.")
    ] = None,
    common: Common = COMMON,
) -> Answer:
    """Wrap the keys of a log anew, by another master key: the old one opens nothing from then on. Rows stay as they are.

    Also while a host runs, if that can read the new key too. Name the new key in the configuration of the host afterwards.
    """
    try:
        source = Source(
            file=None if file is None else str(file.expanduser().absolute()),
            keyring=keyring,
            command=tuple(shlex.split(command or "")),
        )
    except ValueError as error:
        raise UsageError(f"{error}: give one of --file, --keyring and --command") from error
    with reading_log(common) as log:
        if log.keys is None:
            raise UsageError(f"{log.path} is not kept encrypted, so it has no keys")
        number = log.keys.rotate(source, source.key())
    said = f"{counted(number, 'key')} wrapped by {source}; delete the old master key, and its copies"
    return Answer({"ok": True, "keys": number}, lambda screen: screen.line(said))


def _standing(keys: Keyring, clear_from: int | None) -> JsonObject:
    known = keys.all()
    destroyed = sum(key.destroyed is not None for key in known)
    sessions = keys.header.sessions
    return {
        "encrypted": True,
        "sessions": sessions if sessions == "all" else [*sessions],
        "file": keys.shown,
        "keys": len(known) - destroyed,
        "destroyed": destroyed,
        "masterKey": None if keys.source is None else str(keys.source),
        "clearFrom": clear_from,
        "trouble": None if keys.trouble is None else str(keys.trouble),
    }
