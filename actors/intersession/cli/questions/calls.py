"""`intersession calls`: which tools agents called over the whole log, with what, and what these gave."""

from collections.abc import Sequence

from intersession.cli.host import Asked, asks
from intersession.cli.questions.paging import PAGE, Page
from intersession.cli.shell import Answer, Screen, moment, one_line, safe
from intersession.cli.story import Names, names_of
from intersession_actors.debugger import CALLS, CallsAnswer, CallsOf, Listed, call_value, calls_found
from intersession_actors.service import read_arguments
from intersession_events.plain_json import JsonObject, is_object

_TEXT = 100


@asks(CALLS)
def calls(asked: Asked[CallsAnswer], *, page: Page = PAGE) -> Answer:
    """List the calls of tools that agents made.

    Newest first: which session called what with which arguments, and what the tool gave. Calls of an import are among them.
    """
    with asked.view() as view:
        rows, cursor = calls_found(view, read_arguments(CallsOf, asked.given | page.given), page.most)
        values = [call_value(row) for row in rows]
        names = names_of(view.log, [row.session_key for row in rows])
    return page.listing(Listed(values, cursor)).answer(
        "calls", lambda value: value, lambda screen, found: _show(screen, found, names), what="call"
    )


def _show(screen: Screen, found: Sequence[JsonObject], names: Names) -> None:
    for call in found:
        run = f"  run {call['runId']}" if "runId" in call else ""
        screen.one_line(
            safe(f"#{call['position']}  {moment(call['timeMs'])}  ", "dim"),
            safe(f"{names.of(call['sessionKey'])} calls {call['tool']}", "bold"),
            safe(run, "dim"),
        )
        screen.one_line("    ", one_line(call["arguments"], _TEXT))
        result = call.get("result")
        if is_object(result):
            gave = safe(f"    #{result['position']} ", "dim")
            style = "red" if call["failed"] else ""
            screen.one_line(gave, safe("gave ", style), one_line(result["text"], _TEXT))
        else:
            screen.line(safe("    nothing was given back", "dim"))
