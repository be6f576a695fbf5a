"""`intersession rebuild`: builds views anew from the log."""

from contextlib import closing
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import folding, store_url
from intersession.cli.shell import COMMON, OK, Answer, Common, Screen, UsageError, safe
from intersession_actors.disclosure import redact_raw
from intersession_actors.session import long_sessions, take_snapshots
from intersession_events.plain_json import JsonObject
from intersession_events.stores import Tail, kept, kept_inside, open_log
from intersession_projections.inline_views import inline_views
from intersession_projections.tailed_views import tailed_views
from intersession_projections.wording import counted

SNAPSHOTS = "snapshots"
"""What `verify` calls the snapshots of sessions."""


def rebuild(
    view: Annotated[
        str | None,
        Parameter(
            help="Its name, as `verify` prints it; `search` or `usage`; `snapshots` are dropped and taken anew. Default: all "
            "but those that lie beside the log, in `<store>.views`."
        ),
    ] = None,
    /,
    *,
    common: Common = COMMON,
) -> Answer:
    """Build the views of a log anew.

    A view is what lists and searches read; it is made of the events, and can be lost without harm. Readers see the old view
    until the new one is whole. While a host writes to the log this is refused. Snapshots of sessions are dropped, and those
    of long sessions are taken anew: nobody has to wait for that when one wakes. What search and usage look at is emptied,
    and filled again.
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
