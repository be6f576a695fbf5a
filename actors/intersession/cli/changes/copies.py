"""`intersession backup`: a copy of a log, which is continued by the next one, or follows it."""

import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host.beside import TOKEN_VARIABLE, host_beside
from intersession.cli.host.reading import reading_log
from intersession.cli.shell.answer import (
    COMMON,
    NOT_VERIFIED,
    Answer,
    Common,
    Reading,
    UsageError,
    read_given,
)
from intersession.cli.shell.terminal import Screen, safe
from intersession_actors.running.host.extras import imported
from intersession_events.basics.errors import IntersessionError, LogRewritten, MissingExtra, StoreUnavailable
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.following.source import CopySource, LogSource
from intersession_events.copies.following.taking import Continued, LogCopy
from intersession_events.facts.reasons import counted
from intersession_events.log.verifying.report import VerifyReport
from intersession_events.log.verifying.verification import verify_log
from intersession_events.proofs.published import Published, published_in
from intersession_events.proofs.signatures import Trusted, trusted_keys
from intersession_events.stores.backup import back_up
from intersession_events.stores.keys.keyring import clear_from
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.access_receipts import COPIED

_MIB: Final = 1024 * 1024
_EVERY_S: Final = 5
_LONGEST_S: Final = 60

PUBLISHED = Annotated[
    list[Path] | None,
    Parameter(
        help="A file of checkpoints that were published: the copy is checked against them; may be given several times."
    ),
]
TRUST = Annotated[
    list[str] | None,
    Parameter(
        help="A public key whose signatures prove checkpoints, or a file of such keys; may be given several times."
    ),
]


def backup(
    file: Annotated[
        Path, Parameter(help="Where to: a new file, or a copy that an earlier backup of this log made.")
    ],
    /,
    *,
    source: Annotated[
        str | None,
        Parameter(
            name="--from",
            help=f"The gateway of the log, http(s)://HOST:PORT, instead of --store; the token in ${TOKEN_VARIABLE} is that of a credential with the scope copy.",
        ),
    ] = None,
    follow: Annotated[
        bool, Parameter(help="Go on: take what is new as it comes, until Ctrl-C.", negative=())
    ] = False,
    every: Annotated[
        int, Parameter(help="With --follow: seconds between two looks.", validator=Number(gte=1, lte=86_400))
    ] = _EVERY_S,
    rows: Annotated[
        bool,
        Parameter(
            help="Of a log on PostgreSQL: make a log in a file, which later backups continue, instead of a dump.",
            negative=(),
        ),
    ] = False,
    published: PUBLISHED = None,
    trust: TRUST = None,
    verify: Annotated[
        bool, Parameter(help="Verify all of the copy at the end, and not only what is new.", negative=())
    ] = False,
    common: Common = COMMON,
) -> Answer:
    """Copy a log to a file, also while it is in use.

    A new copy holds all events up to a moment, is verified, and has its name only when it is whole. An existing copy of the
    same log is continued: what is new is proven and added, and what was erased since is erased there, too, all or nothing. A
    log that is not any more what the copy has (cut, rewritten, another one) is refused with exit code 4, and the copy stays:
    it is the evidence. A copy can be put in the place of the log (intersession restore).
    """
    lines, keys = published_lines(published), trusted_keys(trust or ())
    if not (source or follow or rows or lines or keys) and not os.path.lexists(file):
        return _whole(file, common)
    copy = LogCopy(file, published=lines, trusted=keys)
    screen = Screen()
    with _source_of(source, common) as taken_from:
        with screen.progress("Copying") as progress:
            try:
                done = copy.take(taken_from, progress)
            except LogRewritten as error:
                return _refused(error, file)
        has_receipt = source is not None or _noted(common, done.position)
        clear = _clear_from(taken_from, file)
        if clear is not None:
            Screen().note(
                safe(
                    f"note: it has words in clear, from #{clear} on, which the log keeps encrypted: such a copy keeps "
                    "them. Make a new one, and delete this one",
                    "yellow",
                )
            )
        if follow:
            return _followed(copy, taken_from, done, every, published)
    if verify:
        report = verified(file, lines, keys)
        if not report.ok:
            return _refused(LogRewritten(f"{file} is not as it was written: {report.found}"), file)
    value: JsonObject = {
        "ok": True,
        "store": taken_from.shown,
        "file": str(file),
        **_continued(done),
        "verified": "all" if verify else "new",
        "bytes": file.stat().st_size,
        "receipt": has_receipt,
        "clearFrom": clear,
    }

    def show(on: Screen) -> None:
        _show(on, done, file, whole=verify)
        _say_unnoted(on, has_receipt=has_receipt)

    return Answer(value, show)


def _clear_from(source: CopySource, file: Path) -> int | None:
    """Return where a copy has the first words in clear of a log that is encrypted: from before it was (CRYPT-7).

    A continuation takes over what is new and what was erased. It can't tell through a gateway, which gives no keys.
    """
    keys = source.keys if isinstance(source, LogSource) else None
    if keys is None:
        return None
    with SqliteLog(file, read_only=True) as copied:
        return clear_from(keys, copied.query)


def _noted(common: Common, position: int) -> bool:
    """Have the log's host, if one is there, leave a receipt of a copy: by it is known how old the last one is (COPY-5)."""
    try:
        beside = host_beside(Reading(store=common.store))
        if beside is None:
            return False
        with beside:
            beside.call(COPIED, {"after": position, "limit": 1})
    except (ConnectionError, IntersessionError, MissingExtra) as error:
        Screen().note(safe(f"note: the log's host keeps no receipt of this copy: {error}", "yellow"))
        return False
    return True


def _say_unnoted(screen: Screen, *, has_receipt: bool) -> None:
    if not has_receipt:
        screen.dim("  no host left a receipt of it: `doctor` and `status` do not know of this copy")


def _whole(file: Path, common: Common) -> Answer:
    with reading_log(common) as log:
        screen = Screen()
        with screen.progress("Copying") as copying, screen.progress("Verifying") as verifying:
            report = back_up(log, file, copying=copying, verifying=verifying)
        size = file.stat().st_size
        keys = None if log.keys is None else log.keys.shown
        value: JsonObject = {
            "ok": True,
            "store": log.path,
            "file": str(file),
            "logId": log.log_id,
            "position": report.head.position,
            "events": report.events,
            "bytes": size,
        }
    value["receipt"] = has_receipt = _noted(common, report.head.position)

    def show(on: Screen) -> None:
        events = f"{counted(report.events, 'event')} up to position {report.head.position}"
        on.line(safe("backed up: ", "bold green"), f"{events}, {size / _MIB:.1f} MiB, verified, in {file}")
        if keys is not None:
            on.line(safe(f"  the keys of its words are not in it: keep a copy of {keys} elsewhere"))
        _say_unnoted(on, has_receipt=has_receipt)

    return Answer(value, show)


@contextmanager
def _source_of(address: str | None, common: Common) -> Generator[CopySource]:
    if address is None:
        with reading_log(common) as log:
            yield LogSource(log)
        return
    if common.store is not None:
        raise UsageError("--from: give the gateway or --store, not both")
    token = os.environ.get(TOKEN_VARIABLE)
    if not token:
        raise UsageError(f"--from: give the token of a credential with the scope copy in ${TOKEN_VARIABLE}")
    made = imported(
        "intersession.gateway.copied", what="backup --from", library="websockets", extra="gateway"
    )
    found: CopySource = made.GatewaySource(address, token)
    yield found


def _followed(
    copy: LogCopy, source: CopySource, done: Continued, every: int, published: Sequence[Path] | None
) -> Answer:
    screen, wait = Screen(), every
    _tell(screen, done)
    while True:
        time.sleep(wait)
        copy.know(published_lines(published))
        try:
            done = copy.take(source)
        except StoreUnavailable as error:
            wait = min(2 * wait, max(_LONGEST_S, every))
            screen.note(safe(f"note: {source.shown} can't be read, it is asked again: {error}", "yellow"))
            continue
        except LogRewritten as error:
            return _refused(error, copy.path)
        wait = every
        if done.position != done.before or done.erased:
            _tell(screen, done)


def _tell(screen: Screen, done: Continued) -> None:
    screen.line(f"#{done.position}  ", _said(done))
    screen.flush()


def _said(done: Continued) -> str:
    parts = [f"{done.position - done.before} new"]
    if done.erased:
        parts.append(f"{counted(done.erased, 'payload')} erased")
    if done.files:
        parts.append(counted(done.files, "file"))
    parts.append(f"checkpoints true up to {done.checked}" if done.checked else "no checkpoint yet")
    if done.signed:
        parts.append(f"signed up to {done.signed}")
    if done.published:
        parts.append(f"as published up to {done.published}")
    return ", ".join(parts)


def _show(screen: Screen, done: Continued, file: Path, *, whole: bool) -> None:
    screen.line(
        safe("backed up: ", "bold green"),
        f"up to position {done.position} in {file}, {'all of it' if whole else 'what is new'} verified",
    )
    screen.line(f"  {_said(done)}")


def _continued(done: Continued) -> JsonObject:
    return {
        "before": done.before,
        "position": done.position,
        "erased": done.erased,
        "files": done.files,
        "checkpoints": {"true": done.checked, "signed": done.signed, "published": done.published},
    }


def refused(what: str, error: LogRewritten, more: JsonObject) -> Answer:
    """Return the answer of a command that has found that a log, or a copy of it, is not what it was."""
    value: JsonObject = {"status": "error", "code": "log_rewritten", "error": str(error), **more}
    return Answer(value, lambda screen: screen.line(safe(what, "bold red"), str(error)), NOT_VERIFIED)


def _refused(error: LogRewritten, file: Path) -> Answer:
    return refused("NOT backed up: ", error, {"file": str(file)})


def published_lines(paths: Sequence[Path] | None) -> Sequence[Published]:
    """Return the published checkpoints of files.

    Raises:
        UsageError: one can't be read.
        BadCheckpoint: one holds none.
    """
    found: list[Published] = []
    for path in paths or ():
        found += published_in(read_given(path, "--published"))
    return found


def verified(file: Path, lines: Sequence[Published], keys: Trusted) -> VerifyReport:
    """Return the verification of all events of a copy."""
    with SqliteLog(file, read_only=True) as copied, Screen().progress("Verifying") as progress:
        return verify_log(copied, published=lines, trusted=keys, progress=progress)
