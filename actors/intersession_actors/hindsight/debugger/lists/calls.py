"""The verb `calls`: tool calls of agents with arguments and results, newest first (FIND-2, ANS-10)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Final, NamedTuple

import msgspec

from intersession_actors.calls.tools.searching import words_asked
from intersession_actors.hindsight.debugger.lists.paging import LimitArgument, Listed, PageAnswer, most_of
from intersession_actors.hindsight.debugger.search import InSpan, span_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import KeyText, Name, SearchText
from intersession_events.basics.ids import SESSIONS, session_stream
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list, is_object, present
from intersession_events.facts import SAYING, ToolCallBlock, message_in, ready, text_of
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row
from intersession_projections.basics.row_prefilter import prefiltered
from intersession_projections.basics.spans import backwards
from intersession_projections.questions.messages import BegunBy, Messages
from intersession_projections.views.full_text.tokens import holds, terms
from intersession_projections.views.held_calls import CallHold, HeldCalls

_BEHIND: Final = 64
"""The number of a session's events after a call that are searched for its result, at a time."""
_FARTHEST: Final = 1024
_AT_ONCE: Final = 128
"""Events that are looked at together, where each would be a question to the log."""
_SHOWN: Final = 2_000
"""Characters that are shown of what a tool gave."""


@ready
class CallsOf(InSpan, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of `calls`; null counts as missing."""

    tool: Annotated[Name | None, msgspec.Meta(description="Only calls of this tool.")] = None
    session: Annotated[KeyText | None, msgspec.Meta(description="Only calls that this session made.")] = None
    agent: Annotated[Name | None, msgspec.Meta(description="Only calls of this agent's sessions.")] = None
    person: Annotated[
        Name | None,
        msgspec.Meta(
            description="Only calls that came of this person's words: their id or name on the channel, or the shown name."
        ),
    ] = None
    args: Annotated[
        SearchText | None,
        msgspec.Meta(
            description=(
                "Only where all of these words stand in what the tool was given; NAME=VALUE: only where that argument, also an "
                "inner one (a.b), has that value."
            )
        ),
    ] = None
    result: Annotated[
        SearchText | None,
        msgspec.Meta(description="Only where all of these words stand in what the tool gave."),
    ] = None
    held: Annotated[
        bool, msgspec.Meta(description="Only calls that waited for a release, or wait for one.")
    ] = False
    failed: Annotated[
        bool, msgspec.Meta(description="Only what was refused or failed, as the tool's answer says.")
    ] = False
    limit: LimitArgument = None


class CallsAnswer(PageAnswer):
    """Calls, the newest first: `{position, timeMs, sessionKey, runId?, callId, tool, arguments, failed, result?, tookMs?, person?, held?}`.

    `result` is `{position, timeMs, text, cut?}`, as far as something was given. `person` is whose words it came of. `held` is
    `{position, rule, action?, by?}`: what held the call, and who released it how. `cursor` is for the calls behind them.
    """

    calls: list[JsonObject]


class Called(NamedTuple):
    """A tool call: the message that made it, and the one with its result, None if there is none."""

    recorded: Recorded
    call: ToolCallBlock
    result: Recorded | None

    @property
    def session_key(self) -> str:
        """The session that made it."""
        return self.recorded.stream.removeprefix(SESSIONS)

    @property
    def gave(self) -> str:
        """What the tool gave; empty where nothing is on record."""
        given = None if self.result is None else message_in(self.result.event)
        return "" if given is None else text_of(given)

    @property
    def failed(self) -> bool:
        """Whether the tool refused it or failed, by its answer, which need not tell."""
        given = None if self.result is None else message_in(self.result.event)
        return given is not None and (given.is_error is True or _status(text_of(given)) in _FAILED)


def list_calls(view: View, given: CallsOf) -> CallsAnswer:
    """Return tool calls in the sessions that the caller sees.

    Raises:
        ToolRefused: a name, a place or the cursor is invalid, or there is no word in `args`.
    """
    rows, cursor = calls_found(view, given, most_of(given.limit))
    return {"count": len(rows), "calls": call_values(rows, view), "cursor": cursor}


def calls_found(view: View, given: CallsOf, most: int) -> Listed[Called]:
    """Return the same, as rows up to about a limit: the calls of one message stay on one page.

    Raises:
        ToolRefused: as `list_calls`.
    """
    rows: list[Called] = []
    for one in _calls(view, given):
        if not view.is_seen(one.session_key):
            continue
        if len(rows) >= most and one.recorded.position != rows[-1].recorded.position:
            return Listed(rows, str(rows[-1].recorded.position))
        rows.append(one)
    return Listed(rows, None)


def _calls(view: View, given: CallsOf) -> Iterator[Called]:
    """Yield the matching calls, newest first, read as they are consumed."""
    was_given, came_out = _given_so(given.args), _came_out(view.log, given)
    for recorded in _told(view, given):
        key = SessionKey.recorded(recorded.stream.removeprefix(SESSIONS))
        if given.agent not in {None, key.agent_id}:
            continue
        message = message_in(recorded.event)
        content = () if message is None else message.content
        for call in () if isinstance(content, str) else reversed(content):
            if not isinstance(call, ToolCallBlock) or given.tool not in {None, call.name}:
                continue
            if was_given(call) and came_out(
                called := Called(recorded, call, _given(view.log, recorded, call.id))
            ):
                yield called


def _told(view: View, given: CallsOf) -> Iterator[Recorded]:
    """Yield the events that may have matching calls."""
    session = None if given.session is None else view.session(given.session, field="session")
    log, span = view.log, span_of(view, given)
    if session is not None:
        found = backwards(log, span, session_stream(session))
    elif given.failed:
        failures = _Failures()
        found = prefiltered(log, span, failures.may_be, ahead=failures.look_at)
    else:
        found = prefiltered(log, span, _may_call)
    if given.person is None:
        yield from found
        return
    began = BegunBy(log, Messages(log), given.person, everywhere=False)
    while some := list(islice(found, _AT_ONCE)):
        began.learn(recorded.correlation for recorded in some)
        yield from (recorded for recorded in some if began.is_of(recorded.correlation))


def _came_out(log: Log, given: CallsOf) -> Callable[[Called], bool]:
    """Return the test for what became of a call.

    Raises:
        ToolRefused: there is no word in `result`.
    """
    gave = () if given.result is None else words_asked(given.result, "result")
    holds_of = HeldCalls(log)
    return lambda called: (
        (called.failed or not given.failed)
        and (not gave or holds(terms([called.gave]), gave))
        and (not given.held or _hold_of(called, holds_of) is not None)
    )


def _given_so(args: str | None) -> Callable[[ToolCallBlock], bool]:
    """Return the test for what a tool was given: NAME=VALUE, or words.

    Raises:
        ToolRefused: there is no word in it.
    """
    if args is None:
        return lambda _: True
    if (named := _NAMED.fullmatch(args)) is not None:
        path, value = named[1].split("."), named[2].strip()
        return lambda call: value in _values_at(path, call.arguments)
    words = words_asked(args, "args")
    return lambda call: holds(terms([call.arguments]), words)


def _values_at(path: Sequence[str], arguments: str) -> Iterator[str]:
    """Yield the value at a path of JSON, a text as it is and others as JSON has them; of a list each."""
    try:
        found: JsonValue = msgspec.json.decode(arguments)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return
    for name in path:
        if not is_object(found) or name not in found:
            return
        found = found[name]
    for each in found if is_list(found) else [found]:
        yield each if isinstance(each, str) else msgspec.json.encode(each).decode()


_NAMED: Final = re.compile(r"([\w-]+(?:\.[\w-]+)*)=(.+)", re.DOTALL)


def call_values(found: Sequence[Called], view: View) -> list[JsonObject]:
    """Return calls as JSON, in the form of a view."""
    began: Mapping[str, str] = {}
    if view.is_operator:  # others may not learn for whom a session that they don't see asked
        began = Messages(view.log).began_by(
            {root for one in found if (root := one.recorded.correlation) is not None}
        )
    holds_of = HeldCalls(view.log)
    return [_value(one, view, began.get(one.recorded.correlation or ""), holds_of) for one in found]


def _value(called: Called, view: View, person: str | None, holds_of: HeldCalls) -> JsonObject:
    recorded, call, key = called.recorded, called.call, called.session_key
    message = message_in(recorded.event)
    hold = _hold_of(called, holds_of)
    return present(
        {
            "position": recorded.position,
            "timeMs": recorded.time,
            "sessionKey": key,
            "runId": None if message is None else message.run_id,
            "person": person,
            "callId": call.id,
            "tool": call.name,
            "arguments": view.shown(call.arguments, key),
            "failed": called.failed,
            "held": None if hold is None else _held_value(hold),
            "result": _result(called, view),
            "tookMs": None if called.result is None else called.result.time - recorded.time,
        }
    )


def _hold_of(called: Called, holds_of: HeldCalls) -> CallHold | None:
    """Return the hold of a call; None where it was not held. It stands between the call and what the tool gave."""
    until = None if called.result is None else called.result.position
    for hold in holds_of.between(called.recorded.position, until):
        if hold.recorded.stream == called.recorded.stream and hold.held.call_id == called.call.id:
            return hold
    return None


def _held_value(hold: CallHold) -> JsonObject:
    over = hold.released
    return present(
        {
            "position": hold.recorded.position,
            "rule": hold.held.rule,
            "action": None if over is None else over.action,
            "by": None if over is None else over.by,
        }
    )


def _result(called: Called, view: View) -> JsonObject | None:
    result = called.result
    message = None if result is None else message_in(result.event)
    if result is None or message is None:
        return None
    text = view.shown(text_of(message), called.session_key) or ""
    cut = len(text) > _SHOWN
    return present(
        {"position": result.position, "timeMs": result.time, "text": text[:_SHOWN], "cut": cut or None}
    )


def _may_call(row: Row) -> bool:
    stream: str = row[1]
    return stream.startswith(SESSIONS) and row[3] in SAYING and b"toolCall" in row[4]


class _Failures:
    """Finds the rows of calls that may have failed, so that what a tool gave is read of these alone.

    Rows are looked at backwards: what was given for a call stands behind it, and is known when its row comes. What was given
    behind the part of the log that is read is not, and such a call may have failed.
    """

    def __init__(self) -> None:
        self._given: dict[tuple[str, bytes], bool] = {}
        self._found: set[int] = set()

    def look_at(self, rows: Iterable[Row]) -> None:
        """Look at the rows before those that were looked at."""
        self._found.clear()
        for position, stream, _, _, state in reversed([row for row in rows if _may_call(row)]):
            if answered := _ANSWERED.search(state):
                self._given[stream, answered[1]] = _may_tell_failure(state)
            calls: list[bytes] = _CALLS.findall(state)
            failed = [self._given.pop((stream, name), True) for name in calls]
            if any(failed) or len(calls) != state.count(_CALL):
                self._found.add(position)

    def may_be(self, row: Row) -> bool:
        """Whether a row of those may be of a call that failed."""
        return row[0] in self._found


def _may_tell_failure(state: bytes) -> bool:
    """Whether an answer of a tool may be a failure: a word that is written with escapes can't be seen in a row."""
    return b'"isError":true' in state or b"\\\\u" in state or any(word in state for word in _FAILED_WORDS)


_CALL: Final = b'"type":"toolCall"'
_CALLS: Final = re.compile(rb'"id":"((?:[^"\\]|\\.)*)","name":"(?:[^"\\]|\\.)*",' + _CALL)
_ANSWERED: Final = re.compile(rb'"toolCallId":"((?:[^"\\]|\\.)*)"')


def _given(log: Log, recorded: Recorded, call_id: str) -> Recorded | None:
    """Return what a tool gave for a call; None where it gave nothing, or far later."""
    for after in range(recorded.version, recorded.version + _FARTHEST, _BEHIND):
        events = log.stream(recorded.stream, after=after, to=after + _BEHIND)
        for one in events:
            message = message_in(one.event)
            if message is not None and message.tool_call_id == call_id:
                return one
        if len(events) < _BEHIND:
            return None
    return None


@ready
class _Answer(msgspec.Struct):
    """The relevant part of a tool's answer."""

    status: str | None = None


_FAILED: Final = frozenset({"error", "forbidden", "timeout", "failed", "refused"})
_FAILED_WORDS: Final = tuple(word.encode() for word in _FAILED)


def _status(text: str) -> str | None:
    try:
        return msgspec.json.decode(text, type=_Answer).status
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
