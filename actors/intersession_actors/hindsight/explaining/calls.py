"""Explains why a call was refused: finds the refusals that an event says, and has each judged again by its record."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.explaining.explanation import Explanation, Input
from intersession_actors.hindsight.explaining.judged import explain_judged
from intersession_actors.hindsight.explaining.rules.failures import SPENT
from intersession_actors.hindsight.explaining.rules.refusals import REFUSALS
from intersession_actors.hindsight.explaining.settings import InForce
from intersession_actors.rules.errors import REFUSAL_CODES, RefusalCode
from intersession_events import facts
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_object
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.spans import Span, backwards


class Refusal(NamedTuple):
    """A call that was refused: by which code, in which words, who called which tool with which arguments."""

    code: RefusalCode
    error: str | None
    requester: str | None
    tool: str
    arguments: JsonObject


def refusal_in(reader: Reader, recorded: Recorded) -> list[Refusal]:
    """Return the refusals that an event says: a receipt may say several, a tool's answer says one."""
    event = recorded.event
    match event:
        case facts.SendRefused():
            code = _known(event.code)
            return (
                []
                if code is None
                else [Refusal(code, None, event.requester, event.tool, {"sessionKey": event.target})]
            )
        case facts.AccessRecorded():
            return [
                Refusal(known, None, event.requester, event.tool, _arguments(event, target))
                for target, said in event.denied
                if (known := _known(said)) is not None
            ]
        case _:
            message = facts.message_in(event)
            is_answer = message is not None and message.role == "toolResult"
            return _in_answer(reader, recorded, message) if message is not None and is_answer else []


def explain_refusal(reader: Reader, in_force: InForce, recorded: Recorded, refusal: Refusal) -> Explanation:
    """Explain a refusal: as it was judged, where the event has the record of that."""
    inputs = (Input(name="requester", value=refusal.requester, set_by="call"), *_arguments_of(refusal))
    rule, said = REFUSALS[refusal.code], f"{refusal.tool} was refused ({refusal.code})"
    if isinstance(recorded.event, facts.SendRefused) and refusal.code == "limit":
        guard = recorded.event
        used = f"{guard.limit} is {guard.allowed}, and the chain had used {guard.value}"
        if guard.limit.startswith("budgets."):
            rule, used = SPENT, f"{guard.limit} is {guard.allowed}, and {guard.value} were used"
        said = f"{refusal.tool} was refused ({used})"
    whole = rule.explains(recorded, "refusal", refusal.code, said, inputs)
    if not _is_of_record(recorded, refusal):
        return whole
    return explain_judged(reader, in_force, whole, recorded, refusal.code)


def _is_of_record(recorded: Recorded, refusal: Refusal) -> bool:
    """Whether a refusal is the one that the record of its event tells of: of several, the last."""
    event = recorded.event
    return not isinstance(event, facts.AccessRecorded) or refusal.code == event.denied[-1][1]


def _known(code: str) -> RefusalCode | None:
    return next((known for known in REFUSAL_CODES if known == code), None)


def _arguments(event: facts.AccessRecorded, target: str) -> JsonObject:
    given = _object(event.filters)
    named = {"sessionKey", "key", "label", "agentId"} & given.keys()
    return given if named else {**given, "sessionKey": target}


def _in_answer(reader: Reader, recorded: Recorded, message: facts.Message) -> list[Refusal]:
    answer = _object(facts.text_of(message))
    said = answer.get("code")
    code = _known(said) if isinstance(said, str) else None
    if code is None or answer.get("status") not in {"error", "forbidden"}:
        return []
    error = answer.get("error")
    return [
        Refusal(
            code,
            error if isinstance(error, str) else None,
            recorded.stream.removeprefix("session:"),
            message.tool_name or "a tool",
            _called_with(reader, recorded, message.tool_call_id),
        )
    ]


def _called_with(reader: Reader, recorded: Recorded, call_id: str | None) -> JsonObject:
    """Return the arguments of the call that a tool's answer is to; it stands in the same run, shortly before."""
    for earlier in backwards(reader.log, Span(to=recorded.position), recorded.stream):
        event = earlier.event
        if isinstance(event, facts.RunStarted):
            break
        message = facts.message_in(event)
        if message is not None and not isinstance(message.content, str):
            for block in message.content:
                if isinstance(block, facts.ToolCallBlock) and block.id == call_id:
                    return _object(block.arguments)
    return {}


def _object(source: str) -> JsonObject:
    try:
        value: JsonValue = msgspec.json.decode(source)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return {**value} if is_object(value) else {}


def _arguments_of(refusal: Refusal) -> Iterator[Input]:
    if refusal.error is not None:
        yield Input(name="error", value=refusal.error, set_by="log")
    for name in ("sessionKey", "key", "label", "agentId", "model", "thinking", "sandbox", "timeoutSeconds"):
        if name in refusal.arguments:
            yield Input(name=name, value=refusal.arguments[name], set_by="call")
