"""The tools as one caller has them: call, await, describe. What a run calls is recorded as it happens."""

import itertools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NamedTuple

import msgspec

from intersession_actors.agents import Given, ToolBox
from intersession_actors.errors import ToolRefused, not_on_a_loop
from intersession_actors.gate import flaw_of, invalid
from intersession_actors.host import DoorThreads
from intersession_actors.policy import Requester
from intersession_actors.service import (
    AccessSummary,
    Call,
    Caller,
    Pending,
    Result,
    Service,
    TargetRefused,
    afinished,
    finished,
)
from intersession_actors.tools.made_before import MadeCall, call_id_of, made_before
from intersession_actors.tools.offered import is_too_deep, tools_offered
from intersession_actors.tools.recorder import RunRecorder
from intersession_actors.tools.registry import TOOLS, Tool, schemas
from intersession_events.errors import StoreUnavailable
from intersession_events.facts import Message, SessionOpened
from intersession_events.plain_json import JsonMapping, JsonObject, JsonValue


class _Recording(NamedTuple):
    """Where a call and its result are recorded, and the id that ties them together. `before`: it was made in another log."""

    service: Service
    recorder: RunRecorder
    call_id: str
    before: MadeCall | None = None


class _Begun(NamedTuple):
    """A call that is under way. `recording` is None where the result is not recorded."""

    recording: _Recording | None
    answer: Result | Pending


class Tools(ToolBox):
    """The tools bound to a caller: a session, or the operator. Made by `SessionSystem.tools`, and for each attempt of a run.

    `threads` block for coroutines; `waiting` lets others run while an agent waits in a tool. `done` is what an attempt that
    goes on in a fork had recorded: a call of it that is made again has its answer, and is not recorded twice. `opened` says how
    the caller's session was opened, where that is known: nobody looks it up.
    """

    def __init__(
        self,
        service: Service,
        caller: Caller,
        *,
        threads: DoorThreads,
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
        done: Sequence[Message] = (),
        opened: SessionOpened | None = None,
    ) -> None:
        self._done = done
        self._opened = opened
        self._service = service
        self._caller = caller
        self._threads = threads
        self._waiting = waiting
        # Calls of a run go by their number: the same run, tried again, counts the same.
        self._ordinals = itertools.count(1)
        self._recorder = (
            None if caller.run is None or caller.key is None else RunRecorder(service, caller.key, caller.run)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The tools this session has (SPAWN-7)."""
        return self._names(self._requester())

    def _requester(self) -> Requester:
        caller = self._caller
        return self._service.reader.requester(caller.key, opened=self._opened, within=caller.within)

    def _names(self, requester: Requester, among: Sequence[str] = tuple(TOOLS)) -> tuple[str, ...]:
        return tools_offered(self._service.config, requester, among)

    def schemas(self, dialect: str = "openai") -> list[JsonObject]:
        """Describe the tools this session has, for `openai`, `anthropic`, `mcp` or plain `json-schema`."""
        return schemas(self.names, dialect)

    def pass_over(self) -> None:
        """Count a call that is not made, so that the next one has the number that it had when it was recorded."""
        next(self._ordinals)

    def call_as_then(self, name: str, arguments: Given, *, ran_out: bool) -> Result:
        """Call a tool, whose wait ends as it did in a recording."""
        return self._called(name, arguments, ran_out=ran_out)

    def _called(self, name: str, arguments: Given, *, ran_out: bool | None = None) -> Result:
        not_on_a_loop("tools.call(…)", "await tools.acall(…)")
        ordinal = next(self._ordinals)
        with self._waiting():
            begun = self._begin(name, _copied(arguments), ordinal)
            answer = begun.answer
            if ran_out is not None and isinstance(answer, Pending):
                answer = answer.as_then(ran_out=ran_out)
            try:
                with self._service.refusing_without_store():
                    result = finished(answer, self._service.blocking)
            except ToolRefused as refused:
                result = dict(refused.as_result())
            _record_result(begun.recording, name, result)
        return result

    async def _acalled(self, name: str, arguments: Given) -> Result:
        return await (await self.abegin(name, arguments))

    async def abegin(self, name: str, arguments: Given = None) -> Coroutine[object, object, Result]:
        """Call a tool, and return what its answer is awaited with. A call that is begun after that comes after it."""
        given, ordinal = _copied(arguments), next(self._ordinals)

        def begin() -> _Begun:
            return self._begin(name, given, ordinal)

        try:
            with self._service.refusing_without_store():
                if self._is_at_once(name):
                    begun = self._threads.here(begin)
                else:
                    begun = await self._threads.run(begin, self._caller.name)
        except ToolRefused as refused:
            begun = _Begun(None, dict(refused.as_result()))
        return self._afinish(begun, name)

    def begin(self, name: str, arguments: JsonMapping | None = None) -> Coroutine[object, object, Result]:
        """Do what `abegin` does, on this thread, which may block. For a door that has more to do on it."""
        return self._afinish(self._begin(name, _copied(arguments), next(self._ordinals)), name)

    def _is_at_once(self, name: str) -> bool:
        """Whether a call reads nothing of the log, so that it needs no thread: who asks is not looked up either."""
        tool = TOOLS.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        return tool is not None and tool.at_once and self._caller.key is None

    async def _afinish(self, begun: _Begun, name: str) -> Result:
        try:
            with self._service.refusing_without_store():
                result = await afinished(begun.answer, self._threads, self._caller.name)
        except ToolRefused as refused:
            result = dict(refused.as_result())
        if begun.recording is not None:
            with suppress(StoreUnavailable):
                await self._threads.run(
                    lambda: _record_result(begun.recording, name, result), self._caller.name
                )
        return result

    # --- one call

    def _begin(self, name: str, arguments: Result, ordinal: int) -> _Begun:
        """Record a call and make it, as far as that goes without waiting. A refusal is an answer."""
        recording: _Recording | None = None
        try:
            if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
                raise invalid("tool", "its name is no text, give one")
            if not isinstance(arguments, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
                raise invalid("arguments", "they are not a JSON object, send one")
            with self._service.refusing_without_store():
                recording = self._record_call(name, arguments, ordinal)
            before = None if recording is None else recording.before
            if before is not None and before.answer is not None:
                return _Begun(None, before.answer)
            made_in = None if before is None else before.log_id
            with self._service.refusing_without_store():
                answer = self._made(name, arguments, ordinal, made_in)
            return _Begun(None if before is not None and before.is_answered else recording, answer)
        except ToolRefused as refused:
            return _Begun(recording, dict(refused.as_result()))

    def _made(self, name: str, arguments: Result, ordinal: int, made_in: str | None) -> Result | Pending:
        call = Call(self._caller, self._requester(), ordinal=ordinal, made_in=made_in)
        try:
            return self._tool(name, call.requester).call(self._service, call, arguments)
        except ToolRefused as refused:
            if isinstance(refused, TargetRefused):
                call.summary = AccessSummary.of_refused(refused.given, refused.code)
            elif refused.status == "forbidden":
                call.summary = AccessSummary.of_refused(str(arguments.get("agentId", "")), refused.code)
            raise
        finally:
            if call.summary is not None:
                self._service.receipts.keep(self._caller, name, arguments, call.summary)

    def _tool(self, name: str, requester: Requester) -> Tool:
        if name not in TOOLS or not self._names(requester, (name,)):
            if name == "sessions_spawn" and is_too_deep(self._service.config, requester):
                raise ToolRefused(
                    "subagent_spawn",
                    "tool: a sub-agent can't start another, report back what is left to do "
                    "(agents.defaults.subagents.maxSpawnDepth)",
                )
            had = ", ".join(self._names(requester)) or "none"
            raise ToolRefused("not_supported", f"tool: there is no {name[:128]!r} here, use one of {had}")
        return TOOLS[name]

    # --- its record in the transcript

    def _record_call(self, name: str, arguments: Result, ordinal: int) -> _Recording | None:
        run, recorder = self._caller.run, self._recorder
        if run is None or recorder is None:
            return None
        source = _recorded(arguments)
        (_, call_id), *there = (
            (log_id, call_id_of(log_id, run, ordinal)) for log_id in self._service.log.log_ids
        )
        before = made_before(dict(there), self._done, name=name, arguments=source)
        if before is not None:
            return _Recording(self._service, recorder, before.call_id, before)
        recorder.tool_call(call_id, name, source)
        return _Recording(self._service, recorder, call_id)


def _record_result(recording: _Recording | None, name: str, result: Result) -> None:
    if recording is None:
        return
    is_error = result.get("status") in {"error", "forbidden"}
    try:
        with recording.service.refusing_without_store():
            recording.recorder.tool_result(recording.call_id, name, _source(result), is_error)
    except ToolRefused as refused:
        # Else the attempt is over; its agent is talking to nobody.
        if refused.code == "unavailable":
            recording.service.store_failed(refused)


def _recorded(arguments: Result) -> str:
    """Return the arguments for the record. Far too many are never copied: their call is refused when they are read."""
    flaw = flaw_of(arguments)
    if flaw is not None and flaw.code == "too_large":
        return _source({"omitted": True, "error": f"{flaw.field}: {flaw.what}"})
    return _source(arguments)


def _copied(arguments: JsonMapping | None) -> Result:
    """Return arguments as they are now. What is no object is refused when the call begins."""
    given: JsonValue = {} if arguments is None else arguments
    return {**given} if isinstance(given, Mapping) else given


def _source(value: object) -> str:
    """Return JSON source text for the record; what can't be JSON is refused elsewhere."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return msgspec.json.encode(ascii(value)).decode()
