"""`intersession search`: where words were said, in all transcripts and events."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.shell import READING, Answer, Cursor, Reading, Screen, Since, Until, moment, safe
from intersession.cli.story import Names, names_of
from intersession.cli.time_travel.seeing import debugger_of
from intersession_actors.debugger import SearchAnswer
from intersession_projections.wording import counted


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Part:
    """The part of the log that is searched."""

    session: Annotated[str | None, Parameter(name="--in", help="Only in this session's own stream.")] = None
    kind: Annotated[
        tuple[str, ...],
        Parameter(
            help="Only events of this name (message_recorded, run_failed, …); may be given several times."
        ),
    ] = ()
    since: Since = None
    until: Until = None


_ALL = Part()
_NO_INDEX = (
    "all events were looked through: there is no index of the words. A host keeps one, and `intersession rebuild search` "
    "makes one, if SQLite has FTS5."
)


def search(
    words: Annotated[tuple[str, ...], Parameter(name="WORDS", help="What to search for.", negative="")],
    /,
    *,
    part: Part = _ALL,
    cursor: Cursor = None,
    limit: Annotated[
        int,
        Parameter(help="At most this many, the newest. Default: 50.", validator=Number(gte=1, lte=1000)),
    ] = 50,
    reading: Reading = READING,
) -> Answer:
    """Find where words were said, in all transcripts and events.

    Newest first. All of the words have to be there, in any case and order; `word*` is any word that begins so. An index
    of the words is kept in `<store>.views`, and brought up to date first; where there is none, the events are looked through,
    which takes some three seconds for a million. What was said is in a transcript, and in the exchange or the spawn it belongs
    to: `--kind run_queued` shows what agents were asked, `--kind run_completed` what they answered.
    """
    with debugger_of(reading) as debugger:
        with (
            Screen().progress("Reading the words") as progress,
            debugger.view.reader.full_text.up_to_date(progress, for_all=debugger.view.is_operator),
        ):
            pass
        found = debugger.search(
            " ".join(words),
            in_=part.session,
            kind=part.kind,
            since=part.since,
            until=part.until,
            cursor=cursor,
            limit=limit,
        )
        names = names_of(debugger.view.log, [hit["sessionKey"] for hit in found["hits"]])
    return Answer(dict(found), lambda screen: _show(screen, found, names))


def _show(screen: Screen, found: SearchAnswer, names: Names) -> None:
    for hit in found["hits"]:
        where = hit["kind"] if hit["sessionKey"] is None else f"{names.of(hit['sessionKey'])}  {hit['kind']}"
        run = "" if hit["runId"] is None else f"  run {hit['runId']}"
        screen.one_line(safe(f"#{hit['position']}  {moment(hit['timeMs'])}  {where}{run}", "dim"))
        screen.line("  ", hit["snippet"])
    count = counted(len(found["hits"]), "hit") if found["hits"] else "no hits"
    screen.line(safe(count, "dim"))
    if not found["indexed"]:
        screen.line(safe(_NO_INDEX, "dim"))
    if found["cursor"] is not None:
        screen.to_copy(safe(f"more: --cursor {found['cursor']}", "dim"))
