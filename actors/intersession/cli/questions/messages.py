"""`intersession messages` and `calls`: messages to sessions with their senders, and calls of tools by agents."""

from collections.abc import Sequence
from typing import Final

from intersession.cli.host.verb_call import VerbCall, asks
from intersession.cli.questions.paging import PAGE, Page
from intersession.cli.shell.answer import Answer
from intersession.cli.shell.terminal import Screen, one_line, safe
from intersession.cli.shell.times import moment
from intersession.cli.story.names import Names, names_of
from intersession.cli.story.standing import delivery_in_words
from intersession.cli.story.unknown import unknown_names
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.hindsight.debugger.lists.calls import CallsAnswer, CallsOf, call_values, calls_found
from intersession_actors.hindsight.debugger.lists.messages import (
    MessagesAnswer,
    MessagesOf,
    Texts,
    messages_found,
    said_value,
    speaker,
)
from intersession_actors.hindsight.debugger.lists.paging import Listed
from intersession_actors.hindsight.debugger.verbs.verbs import CALLS, MESSAGES
from intersession_events.basics.plain_json import JsonObject, is_object
from intersession_events.facts import Provenance, text_of
from intersession_events.stores.opened import has_writer
from intersession_projections.basics.speakers import OPENCLAW, is_openclaws
from intersession_projections.questions.messages import IncomingMessage

_INDENT: Final = 4


_NOTHING: Final = "nothing of it went outside"
_UNKNOWN: Final = (
    "what of it went outside was not imported; `intersession runs` says what the record shows of announces"
)


@asks(MESSAGES)
def messages(asked: VerbCall[MessagesAnswer], *, page: Page = PAGE) -> Answer:
    """List what was said to sessions: who, to whom, on whose behalf.

    Newest first. `intersession messages --to research --since TIME --until TIME --why --delivered` says who spoke to research, why, and
    whether somebody outside got the answer. What agents answered is told by `replay` and `history`.
    """
    with asked.view() as view:
        given = read_arguments(MessagesOf, asked.given | page.given)
        at_work = has_writer(view.log)
        found = messages_found(view, given, page.most)
        keys = [[speaker(said.message), said.target, *(said.began or ())[1:2]] for said, _ in found.rows]
        names = names_of(view.log, keys)
        unknown = [] if found.rows else unknown_names(view.reader, {"--person": given.person})
    return page.answer(
        found,
        "messages",
        lambda row: said_value(*row, view=view, given=given),
        lambda screen, rows: _show(screen, rows, names, given, at_work=at_work),
        what="message",
        unknown=unknown,
    )


def _show(
    screen: Screen,
    rows: Sequence[tuple[IncomingMessage, Texts]],
    names: Names,
    given: MessagesOf,
    *,
    at_work: bool,
) -> None:
    for said, texts in rows:
        who, behalf = _told(said, names)
        run = "" if said.run is None else f"  run {said.run.run_id}"
        if said.run is not None and said.run.retry_of is not None:
            run = f"{run}, again, for run {said.run.retry_of}"
        screen.line(
            safe(f"#{said.position}  {moment(said.time_ms)}  ", "dim"),
            safe(f"{who} → {names.of(said.target)}", "bold"),
            safe(f"{behalf}{run}", "dim"),
        )
        screen.indented(text_of(said.message), _INDENT)
        if given.why and said.began is not None and said.began[0] != said.position:
            position, key, message = said.began
            screen.indented(
                safe(f"because of #{position} to {names.of(key)}: {text_of(message)}", "dim"), _INDENT
            )
        for text, note in texts:
            screen.indented(safe(delivery_in_words(text, note, at_work=at_work), "dim"), _INDENT)
        if given.delivered and not texts:
            screen.indented(safe(_UNKNOWN if said.imported else _NOTHING, "dim"), _INDENT)


def _told(said: IncomingMessage, names: Names) -> tuple[str, str]:
    """Return the speaker, and on whose behalf if that differs, in words."""
    spoke = OPENCLAW if is_openclaws(said.message) else speaker(said.message)
    if spoke == "person" and said.person is not None:
        return _called(said.person), ""
    behalf = "" if said.person is None else f" for {_called(said.person)}"
    return (names.of(spoke) if ":" in spoke else spoke), behalf


def _called(person: Provenance) -> str:
    channel = person.source_channel or "an unknown channel"
    if channel == "operator":
        return "operator"
    if person.sender is None:
        return f"somebody on {channel} (not recorded who)"
    return f"{person.sender_name or person.sender} on {channel}"


_TEXT = 100


@asks(CALLS)
def calls(asked: VerbCall[CallsAnswer], *, page: Page = PAGE) -> Answer:
    """List the calls of tools that agents made.

    Newest first: which session called what with which arguments, and what the tool gave. Calls of an import are among them.
    """
    with asked.view() as view:
        rows, cursor = calls_found(view, read_arguments(CallsOf, asked.given | page.given), page.most)
        values = call_values(rows, view)
        names = names_of(view.log, [row.session_key for row in rows])
    return page.answer(
        Listed(values, cursor),
        "calls",
        lambda value: value,
        lambda screen, found: _show_calls(screen, found, names),
        what="call",
    )


def _show_calls(screen: Screen, found: Sequence[JsonObject], names: Names) -> None:
    for call in found:
        run = f"  run {call['runId']}" if "runId" in call else ""
        person = f" for {call['person']}" if "person" in call else ""
        screen.one_line(
            safe(f"#{call['position']}  {moment(call['timeMs'])}  ", "dim"),
            safe(f"{names.of(call['sessionKey'])} calls {call['tool']}", "bold"),
            safe(f"{person}{run}", "dim"),
        )
        screen.one_line("    ", one_line(call["arguments"], _TEXT))
        if is_object(held := call.get("held")):
            outcome = f"{held['action']} by {held['by']}" if "action" in held else "waits"
            screen.one_line("    ", safe(f"held by {held['rule']}: {outcome}", "dim"))
        result = call.get("result")
        if is_object(result):
            gave = safe(f"    #{result['position']} ", "dim")
            style = "red" if call["failed"] else ""
            screen.one_line(gave, safe("gave ", style), one_line(result["text"], _TEXT))
        else:
            screen.dim("    nothing was given back")
