"""`intersession calls`: which tools agents called over the whole log, with what, and what these gave."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import reader_of
from intersession.cli.questions.paging import PAGE, Listing, Page
from intersession.cli.shell import READING, Answer, Reading, Screen, moment, one_line, safe
from intersession.cli.story import Names, names_of
from intersession_actors.debugger import CallsWanted, call_value, calls_in, page_of_calls, session_named
from intersession_actors.tools import words_asked
from intersession_events.plain_json import JsonObject, is_object

_TEXT = 100


def calls(
    *,
    tool: Annotated[str | None, Parameter(help="Only calls of this tool.")] = None,
    session: Annotated[str | None, Parameter(help="Only calls that this session made.")] = None,
    args: Annotated[
        str | None, Parameter(help="Only where all of these words stand in what the tool was given.")
    ] = None,
    failed: Annotated[
        bool, Parameter(help="Only what was refused or failed, as the tool's answer says.")
    ] = False,
    page: Page = PAGE,
    reading: Reading = READING,
) -> Answer:
    """List the calls of tools that agents made.

    Newest first: which session called what with which arguments, and what the tool gave. Calls of an import are among them.
    """
    with reader_of(reading) as reader:
        wanted = CallsWanted(
            tool=tool,
            session_key=None if session is None else session_named(reader, session, field="--session"),
            args=() if args is None else words_asked(args, "--args"),
            failed=failed,
            span=page.span(reader),
        )
        rows, cursor = page_of_calls(calls_in(reader.log, wanted), page.most)
        values = [call_value(row) for row in rows]
        names = names_of(reader.log, [row.session_key for row in rows])
    listing = Listing(values, cursor, as_lines=page.jsonl)
    return listing.answer(
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
