"""`intersession search`: where words were said, in all transcripts and events."""

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host import Asked, asks
from intersession.cli.shell import Answer, Screen, moment, safe
from intersession.cli.story import Names, names_of
from intersession_actors.debugger import SEARCH, SearchAnswer
from intersession_projections.wording import counted

_WORDS = Annotated[tuple[str, ...], Parameter(name="WORDS", help="What to search for.", negative="")]
_LIMIT = Annotated[
    int | None,
    Parameter(help="At most this many, the newest. Default: 50.", validator=Number(gte=1, lte=1000)),
]
_NO_INDEX = (
    "all events were looked through: there is no index of the words. A host keeps one, and `intersession rebuild search` "
    "makes one, if SQLite has FTS5."
)


@asks(SEARCH, words="WORDS", options={"words": _WORDS, "limit": _LIMIT})
def search(asked: Asked[SearchAnswer]) -> Answer:
    """Find where words were said, in all transcripts and events.

    Newest first. All of the words have to be there, in any case and order; `word*` is any word that begins so. An index
    of the words is kept in `<store>.views`, and brought up to date first; where there is none, the events are looked through,
    which takes some three seconds for a million. What was said is in a transcript, and in the exchange or the spawn it belongs
    to: `--kind run_queued` shows what agents were asked, `--kind run_completed` what they answered.
    """
    asked.given["words"] = " ".join(asked.given["words"])
    with asked.view() as view:
        with (
            Screen().progress("Reading the words") as progress,
            view.reader.full_text.up_to_date(progress, for_all=True),
        ):
            pass
        found = asked.of(view)
        names = names_of(view.log, [hit["sessionKey"] for hit in found["hits"]])
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
