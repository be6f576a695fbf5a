"""`intersession migrate`, `rebuild` and `checkpoint`: another store, rebuilt views, and a proof."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host.hosting import operator_of
from intersession.cli.host.reading import folding, store_url
from intersession.cli.shell.answer import COMMON, OK, READING, Answer, Common, Json, Reading, UsageError
from intersession.cli.shell.terminal import Screen, safe
from intersession_actors.owners.session.snapshots import long_sessions, take_snapshots
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.config.host import Publish
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_events.basics.machine import monotonic_s
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.migrating import migrate as moved
from intersession_events.facts.reasons import counted
from intersession_events.log.views import InlineView
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.tailing.places import kept, kept_inside
from intersession_events.stores.tailing.tail import Tail
from intersession_projections.views.full_text.view import FullTextView
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.tailed_views import tailed_views

_ANSWER_SECONDS = 10.0
_PAUSE_SECONDS = 0.1


_PLACE = "sqlite:///FILE, FILE or postgresql://USER@HOST/DATABASE?schema=NAME."


def migrate(
    source: Annotated[str, Parameter(name="FROM", help=f"The log: {_PLACE}")],
    target: Annotated[str, Parameter(name="TO", help=f"Where to, with nothing there yet: {_PLACE}")],
    /,
    *,
    json: Json = False,
) -> Answer:
    """Move a log to another store: SQLite to PostgreSQL, or back.

    All events go over as they are, with their positions, hashes, ids, epochs, checkpoints and proofs, and both logs are compared
    and verified before the new one can be opened; its forks are copied then. While a host writes to the log this is refused. A
    move that was killed goes on when it is run again. The old log stays as it was: from then on write to one of them.
    """
    del json
    with ExitStack() as shown:
        bars: dict[str, Callable[[int, int | None], None]] = {}

        def tell(what: str, done: int, of: int) -> None:
            if what not in bars:
                bars[what] = shown.enter_context(Screen().progress(what.capitalize()))
            bars[what](done, of)

        done = moved(source, target, progress=tell)
    with folding() as on_folding, open_log(target, inline=inline_views(), on_folding=on_folding) as log:
        views = log.built
    value: JsonObject = {
        "ok": True,
        "from": done.source,
        "to": done.target,
        "logId": done.head.log_id,
        "position": done.head.position,
        "events": done.events,
        "resumedAt": done.resumed_at,
        "head": done.head.hash,
        "views": [*views],
        "files": done.files,
        "forks": done.taken.forks,
        "forksLeft": dict(done.taken.left),
    }

    def show(on: Screen) -> None:
        events = f"{counted(done.events, 'event')} up to position {done.head.position}"
        on.line(safe("moved: ", "bold green"), f"{events}, compared and verified, to {done.target}")
        if done.resumed_at:
            on.line(f"  {done.resumed_at} of these positions were there from an earlier attempt")
        if done.files:
            on.line(f"  {counted(done.files, 'file')} of messages copied along")
        if done.taken.forks:
            on.line(f"  {counted(done.taken.forks, 'fork')} copied along")
        for file, why in done.taken.left.items():
            on.line(safe("  not copied: ", "bold yellow"), f"{file}: {why}")
        on.line(f"  {done.source} is as it was. Write to one of the two from now on: they have one id")

    return Answer(value, show)


SNAPSHOTS = "snapshots"
"""What `verify` calls the snapshots of sessions."""


def rebuild(
    view: str | None = None,
    /,
    *,
    common: Common = COMMON,
) -> Answer:
    """Build the views of a log anew.

    A view is what lists and searches read; it is made of the events, and can be lost without harm. Readers see the old view
    until the new one is whole. While a host writes to the log this is refused. Snapshots of sessions are dropped, and those
    of long sessions are taken anew: nobody has to wait for that when one wakes. What search and usage look at is emptied,
    and filled again.

    Args:
        view: Its name, as `verify` prints it; `search` or `usage`; `snapshots` are dropped and taken anew. Default: all but those that lie beside the log, in `<store>.views`.
    """
    views, tailed = inline_views(), tailed_views(redact_raw)
    names = [one.name for one in (*views, *tailed)]
    if view is not None and view not in {*names, SNAPSHOTS}:
        raise UsageError(f"no view {view!r}: there are {', '.join((*names, SNAPSHOTS))}")
    url = store_url(common)
    open_log(url, read_only=True).close()  # a log that is not there is not made
    with folding() as on_folding:
        log = open_log(url, inline=views, on_folding=on_folding)
    with log:
        tailed = _kept_of(log, view, tailed_views(redact_raw, log))
        names = [one.name for one in (*views, *tailed)]
        inline, inside = {one.name for one in views}, kept_inside(log)
        built = [name for name in names if (name in inline | inside if view is None else name == view)]
        if left := [name for name in built if name in inline and name not in log.built]:
            with Screen().progress(f"Building {', '.join(left)}") as progress:
                log.rebuild(*left, progress=progress)
        for one in tailed:
            if one.name in built:
                with Screen().progress(f"Building {one.name}") as progress, closing(kept(one, log)) as opened:
                    opened.begin_anew()
                    Tail(log, opened).catch_up(progress)
        dropped = taken = 0
        if view in {None, SNAPSHOTS}:
            dropped = log.states.drop()
            with Screen().progress("Folding long sessions") as progress:
                taken = take_snapshots(log, long_sessions(log), progress)
        position = log.head()
        aside = [lost for lost in log.set_aside() if lost.view in built]
    value: JsonObject = {
        "ok": True,
        "store": log.path,
        "views": [*built],
        "position": position,
        "setAside": len(aside),
        "snapshotsDropped": dropped,
        "sessionsFolded": taken,
    }

    def show(screen: Screen) -> None:
        if built:
            screen.line(safe("rebuilt: ", "bold green"), f"{', '.join(built)} up to position {position}")
        if view in {None, SNAPSHOTS}:
            screen.line(
                safe("dropped: ", "bold green"),
                f"{counted(dropped, 'snapshot')}; {counted(taken, 'long session')} folded anew",
            )
        if aside:
            screen.line(
                f"  {len(aside)} events could not be taken in; `intersession verify` looks at each event"
            )

    return Answer(value, show, OK)


def _kept_of(log: PortableLog, view: str | None, tailed: tuple[InlineView, ...]) -> tuple[InlineView, ...]:
    """Return the tailed views that are kept for a log: none with the words of an encrypted one (CRYPT-1)."""
    if not log.is_encrypted:
        return tailed
    if view == FullTextView.name:
        raise UsageError(
            f"{view!r} is kept nowhere: the log is encrypted, and each process makes it in memory"
        )
    return tuple(one for one in tailed if one.name != FullTextView.name)


def checkpoint(*, note: bool = False, reading: Reading = READING) -> Answer:
    """Take a checkpoint: a proof of all that is in the log by now.

    What is in it up to here can't be reordered or cut without a trace. Where the log has a host, that one takes
    it; else this command is its host for so long, and goes on with open runs. If nothing is new, the last one is
    shown again. It is signed and published as the configuration says, and a note tells where that says neither;
    witnesses and an authority for timestamps have ten seconds to answer.

    Args:
        note: Print it as a signed note, as other tools for transparency logs check it.
    """
    with operator_of(reading) as operator:
        went_on = sum(operator.reader.runs.open_by_status().values()) if operator.here else 0
        answer = operator.call("checkpoints.take", {})
        until = monotonic_s() + _ANSWER_SECONDS
        while answer.get("waitingFor") and monotonic_s() < until:
            time.sleep(_PAUSE_SECONDS)
            answer = operator.call("checkpoints.take", {})
    if note and "note" not in answer:
        raise UsageError(
            "--note: the checkpoint is not signed; name a key as checkpoints.keyFile (`intersession keys new FILE`)"
        )
    for said in _unsaid(answer, reading, went_on, here=operator.here):
        Screen().note(safe(f"note: {said}", "yellow"))

    def show(screen: Screen) -> None:
        for target in answer.get("waitingFor") or ():
            screen.note(f"no answer yet of the {target}; `intersession doctor` says more")
        if note:
            for line in answer["note"].splitlines():
                screen.to_copy(line)
            return
        signed = f", signed by {answer['keyId']}" if answer.get("keyId") else ""
        screen.line(
            safe("checkpoint: ", "bold green"),
            f"{answer['count']} events up to position {answer['position']}{signed}",
        )
        screen.dim(f"  {answer['hash']}")

    return Answer(answer, show)


def _unsaid(answer: JsonObject, reading: Reading, went_on: int, *, here: bool) -> Iterator[str]:
    """Yield what a checkpoint does not show of itself: that it is not signed, or not published, and what was done besides."""
    file = "the file of --config" if here else "the configuration of its host"
    if not answer.get("keyId"):
        yield f"it is not signed: name a key as checkpoints.keyFile in {file}"
    if here and load_config(reading.config).config.checkpoints.publish == Publish():
        yield f"it is published nowhere: name a place as checkpoints.publish in {file}"
    if went_on:
        runs = counted(went_on, "open run")
        yield f"no host was there: this command was it, and went on with {runs} as far as it has their agents"
