"""`intersession migrate`: moves a log to another store, and builds its views there."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import folding
from intersession.cli.shell import Answer, Json, Screen, safe
from intersession_events.migrating import migrate as moved
from intersession_events.plain_json import JsonObject
from intersession_events.stores import open_log
from intersession_projections.inline_views import inline_views
from intersession_projections.wording import counted

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
        "forks": done.taken.forks,
        "forksLeft": dict(done.taken.left),
    }

    def show(on: Screen) -> None:
        events = f"{counted(done.events, 'event')} up to position {done.head.position}"
        on.line(safe("moved: ", "bold green"), f"{events}, compared and verified, to {done.target}")
        if done.resumed_at:
            on.line(f"  {done.resumed_at} of these positions were there from an earlier attempt")
        if done.taken.forks:
            on.line(f"  {counted(done.taken.forks, 'fork')} copied along")
        for file, why in done.taken.left.items():
            on.line(safe("  not copied: ", "bold yellow"), f"{file}: {why}")
        on.line(f"  {done.source} is as it was. Write to one of the two from now on: they have one id")

    return Answer(value, show)
