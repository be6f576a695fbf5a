"""The tools of one caller: call, await, describe. A run's calls are recorded as they happen."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from itertools import count
from typing import Final, NamedTuple

import msgspec

from intersession_actors.calls.service.approvals import begin_approval
from intersession_actors.calls.service.asking import asked_within, of_run, was_asked_for
from intersession_actors.calls.service.callers import AccessSummary, Call, Caller
from intersession_actors.calls.service.pending import (
    INVOKE,
    Held,
    Pending,
    Result,
    afinished,
    finished,
    handed_on,
    with_fields,
)
from intersession_actors.calls.service.resolve import TargetRefused
from intersession_actors.calls.service.service import Service
from intersession_actors.calls.tools.made_before import (
    CallsBefore,
    MadeCall,
    as_recorded,
    asks_for,
    source_of,
    words_in,
    words_of,
)
from intersession_actors.calls.tools.recorder import RunRecorder
from intersession_actors.calls.tools.registry import (
    TOOLS,
    Tool,
    is_read_from_log,
    schemas,
    tools_offered,
    workshop,
)
from intersession_actors.outside.agents.turn import Approval, ToolArguments, ToolBox
from intersession_actors.owners.chains.cause import Times
from intersession_actors.rules.errors import Judgement, ToolRefused, not_on_a_loop
from intersession_actors.rules.gate.values import invalid, storable
from intersession_actors.rules.policy.access import Requester
from intersession_actors.rules.policy.tools import UseTool, judge_tool
from intersession_actors.running.host.door_threads import DoorThreads
from intersession_events.basics import ids
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.plain_json import JsonMapping, JsonObject, JsonValue
from intersession_events.facts import (
    ERASED,
    Event,
    FlowAccepted,
    Message,
    MessageRecorded,
    RunQueued,
    SessionOpened,
    ToolCallBlock,
    same_request,
    text_of,
)
from intersession_projections.views.held_calls import HeldCalls

_AS_LONG_AS_IT_TAKES_S: Final = 1e9

_NAME: Final = 128
"""The length of an unknown tool's name in an error."""


class _Recording(NamedTuple):
    """Where a call and its result are recorded, and the id that ties them together. `before`: it was made before."""

    service: Service
    recorder: RunRecorder
    call_id: str
    before: MadeCall | None = None


class _CallIdentity(NamedTuple):
    """A call as it was made. Of a run: how it is recorded, the digest of that, and its numbers in the attempt, from 1 on.

    `time` counts the calls with the same content, `number` all.
    """

    name: str
    arguments: Result
    recorded: ToolCallBlock | None = None
    words: str = ""
    time: int = 0
    number: int = 0


class _Begun(NamedTuple):
    """A call that is under way. `recording` is None where the result is not recorded; `judged` is what a refusal was judged by."""

    recording: _Recording | None
    answer: Result | Pending
    judged: Judgement | None = None


class Tools(ToolBox):
    """The tools bound to a caller: a session, or the operator. Made by `SessionSystem.tools`, and for each attempt of a run.

    `threads` block for coroutines; `waiting` lets others run while an agent waits in a tool. `done` is what the run had recorded
    when its attempt began: a call of it that is made again has its answer, and is not recorded twice (SEND-13). `opened` says how
    the caller's session was opened, where that is known: nobody looks it up. `number` is a call's own, by a host that hands it
    on, and whether that was done before: then a call without a key counts once as well (DOOR-2).
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
        offers: bool = True,
        number: tuple[str, bool] | None = None,
    ) -> None:
        self._offers = offers
        self._number = number
        self._opened = opened
        self._service = service
        self._caller = caller
        self._threads = threads
        self._waiting = waiting
        # A run that is tried again says the same as often, in whatever order its calls come.
        self._times = Times()
        self._numbers = count(1)
        self._before = None if caller.run is None else CallsBefore(service.log.log_ids, caller.run, done)
        self._recorder = (
            None if caller.run is None or caller.key is None else RunRecorder(service, caller.key, caller.run)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The tools this session has (SPAWN-7)."""
        return self._names(self._requester())

    def _requester(self) -> Requester:
        caller, service = self._caller, self._service
        requester = service.reader.requester(caller.key, opened=self._opened, within=caller.within)
        return of_run(service, caller, requester)

    def _names(self, requester: Requester, among: Sequence[str] = tuple(TOOLS)) -> tuple[str, ...]:
        return tools_offered(self._service.config, requester, among)

    def schemas(self, dialect: str = "openai") -> list[JsonObject]:
        """Describe the session's tools, for `openai`, `responses`, `anthropic`, `mcp` or plain `json-schema`."""
        return schemas(self.names, dialect) if self._offers else []

    def allowed(self, names: Sequence[str]) -> list[str]:
        """Return which tools of the agent's own the settings let the session have (TOOL-5)."""
        offered = self._names(self._requester(), tuple(name.lower() for name in names)) if names else ()
        return [name for name in names if name.lower() in offered]

    def pass_over(self, name: str, arguments: ToolArguments = None) -> None:
        """Count a skipped call, so that the next one with the same content counts as the one after it."""
        self._said(name, arguments)

    def _said(
        self, name: str, arguments: ToolArguments, numbered: tuple[int, int] | None = None
    ) -> _CallIdentity:
        given = _copied(arguments)
        if self._caller.run is None:
            return _CallIdentity(name, given)
        block = as_recorded(name, given)
        words = words_in(block)
        time, number = numbered or (self._times.next(words), next(self._numbers))
        return _CallIdentity(name, given, block, words, time, number)

    def begin_numbered(self, name: str, arguments: ToolArguments, time: int, number: int) -> Result | Pending:
        """Make a call of the attempt, as far as that goes without waiting; its result is recorded (WORK-6).

        It is the `time`-th with the same content, and the `number`-th of all.
        """
        begun = self._begin(self._said(name, arguments, (time, number)))
        return self._answered(begun, name, lambda: begun.answer)

    def _answered(self, begun: _Begun, name: str, answer: Callable[[], Result | Pending]) -> Result | Pending:
        """Return an answer once it is recorded, or the wait for that. A refusal is an answer."""
        try:
            with self._service.refusing_without_store:
                result = answer()
        except ToolRefused as refused:
            begun = begun._replace(judged=refused.judged)
            result = dict(refused.as_result())
        if isinstance(result, Pending):
            return msgspec.structs.replace(result, finish=partial(self._answered, begun, name, result.finish))
        _record_result(begun, name, result)
        return result

    def call_as_then(self, name: str, arguments: ToolArguments, *, ran_out: bool) -> Result:
        """Call a tool with the wait's outcome of a recording."""
        return self._called(name, arguments, ran_out=ran_out)

    def _called(self, name: str, arguments: ToolArguments, *, ran_out: bool | None = None) -> Result:
        not_on_a_loop("tools.call(…)", "await tools.acall(…)")
        said = self._said(name, arguments)
        with self._waiting():
            begun = self._begin(said)
            answer = begun.answer
            if ran_out is not None and isinstance(answer, Pending):
                answer = answer.as_then(ran_out=ran_out)
            try:
                with self._service.refusing_without_store:
                    result = finished(answer, self._service.blocking)
            except ToolRefused as refused:
                begun = begun._replace(judged=refused.judged)
                result = dict(refused.as_result())
            _record_result(begun, name, result)
        return result

    async def _acalled(self, name: str, arguments: ToolArguments) -> Result:
        return await (await self.abegin(name, arguments))

    async def abegin(self, name: str, arguments: ToolArguments = None) -> Coroutine[object, object, Result]:
        """Call a tool, and return an awaitable for its answer. Calls that begin later are ordered after it."""
        said = self._said(name, arguments)

        def begin() -> _Begun:
            return self._begin(said)

        try:
            with self._service.refusing_without_store:
                if self._is_at_once(name):
                    begun = self._threads.here(begin)
                else:
                    begun = await self._threads.run(begin, self._caller.name)
        except ToolRefused as refused:
            begun = _Begun(None, dict(refused.as_result()))
        return self._afinish(begun, name)

    def begin(self, name: str, arguments: JsonMapping | None = None) -> Coroutine[object, object, Result]:
        """Like `abegin`, on this thread, which may block. For a door that has more work for the thread."""
        return self._afinish(self._begin(self._said(name, arguments)), name)

    def _is_at_once(self, name: str) -> bool:
        """Whether a call reads nothing of the log, so that it needs no thread: the caller is not looked up either."""
        tool = TOOLS.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        return tool is not None and tool.at_once and self._caller.key is None

    async def _afinish(self, begun: _Begun, name: str) -> Result:
        try:
            with self._service.refusing_without_store:
                result = await afinished(begun.answer, self._threads, self._caller.name)
        except ToolRefused as refused:
            begun = begun._replace(judged=refused.judged)
            result = dict(refused.as_result())
        if begun.recording is not None:
            with suppress(StoreUnavailable):
                await self._threads.run(lambda: _record_result(begun, name, result), self._caller.name)
        return result

    # --- one call

    def _begin(self, said: _CallIdentity) -> _Begun:
        """Record a call and make it, as far as that goes without waiting. A refusal is an answer."""
        recording: _Recording | None = None
        name, arguments = said.name, said.arguments
        try:
            if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
                raise invalid("tool", "its name is no text, give one")
            if not isinstance(arguments, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
                raise invalid("arguments", "they are not a JSON object, send one")
            with self._service.refusing_without_store:
                recording = self._record_call(said)
                before = None if recording is None else recording.before
                if before is not None and before.answer is not None:
                    return _Begun(None, before.answer)
                answer = self._approved(said, recording)
            return _Begun(None if before is not None and before.is_answered else recording, answer)
        except ToolRefused as refused:
            return _Begun(recording, dict(refused.as_result()), refused.judged)

    def _approved(self, said: _CallIdentity, recording: _Recording | None) -> Result | Pending:
        """Make a call, once people have approved it where they have to (ASK)."""
        run, key = self._caller.run, self._caller.key
        before = None if recording is None else recording.before
        if run is None or key is None or recording is None:
            return self._made(said, None)
        asked = begin_approval(
            self._service,
            key,
            run,
            recording.call_id,
            said.name,
            said.arguments,
            lambda: self._hold_of(said, recording.call_id),
            may_have_acted=self._asked_before(before) is not None,
        )
        if isinstance(asked, Approval):
            return self._made(said, recording)

        def finish() -> Result | Pending:
            said_of_it = asked.finish()
            if said_of_it.refused is not None:
                raise ToolRefused("not_approved", said_of_it.refused)
            made = self._made(said._replace(arguments={**said_of_it.arguments}), recording)
            if said_of_it.edited_by is None:
                return made
            return with_fields(
                made, approval={"editedBy": said_of_it.edited_by, "arguments": {**said_of_it.arguments}}
            )

        return Held(future=asked.future, timeout=_AS_LONG_AS_IT_TAKES_S, finish=finish, over=_nothing)

    def _hold_of(self, said: _CallIdentity, call_id: str) -> str:
        """Return the id of the hold of a recorded call: of a fork's source, or as the first logs had it, where it is held under that."""
        run, log_ids = self._caller.run, self._service.log.log_ids
        run_id = "" if run is None else run.run_id
        own, *before = (ids.derive(log_id, "hold", call_id) for log_id in log_ids)
        before += (ids.derive(log_id, "hold", run_id, said.words, said.time) for log_id in log_ids)
        holds = HeldCalls(self._service.log)
        return next((one for one in before if holds.named(one)), own)

    def _asked_before(self, before: MadeCall | None) -> str | None:
        """Return the id of the run that a call made before has asked for."""
        asked = () if before is None else before.may_have_asked_for
        return next(
            (run_id for log_id, run_id in asked if was_asked_for(self._service, log_id, run_id)), None
        )

    def _made(self, said: _CallIdentity, recording: _Recording | None) -> Result | Pending:
        name, arguments = said.name, said.arguments
        writer = self._service.writer
        if writer is not None and not is_read_from_log(name):
            asked = {"name": name, "args": arguments}
            return handed_on(self._service.log, writer, self._caller, INVOKE, asked)
        asks_for, again, digests = self._asks_for(said, recording)
        call = Call(self._caller, self._requester(), asks_for=asks_for, again=again, digests=digests)
        try:
            return self._tool(name, call.requester).call(self._service, call, arguments)
        except ToolRefused as refused:
            if isinstance(refused, TargetRefused):
                call.summary = AccessSummary.of_refused(refused.given, refused.code, refused.judged)
            elif refused.status == "forbidden":
                named = str(arguments.get("agentId", ""))
                call.summary = AccessSummary.of_refused(named, refused.code, refused.judged)
            raise
        finally:
            if call.summary is not None:
                self._service.receipts.keep(self._caller, name, arguments, call.summary)

    def _asks_for(
        self, said: _CallIdentity, recording: _Recording | None
    ) -> tuple[str | None, bool, tuple[str, ...]]:
        """Return the id of a call's run, if it derives from the call, and whether it may exist already.

        With it come the digests by which a later attempt finds it, where the call itself is not on record.
        """
        service, run = self._service, self._caller.run
        before = None if recording is None else recording.before
        asked = self._asked_before(before)
        if asked is not None:
            return asked, True, ()
        if said.arguments.get("idempotencyKey") is not None:
            return None, before is not None, ()  # its key says which call it is
        if run is not None and recording is not None:
            made = recording.call_id, run.run_id, said.words, said.time
            return asks_for(service.log.log_id, *made), before is not None, ()
        if said.name not in TOOLS or TOOLS[said.name].reads:
            return None, False, ()
        words = partial(words_of, said.name, said.arguments)  # for few calls anybody asks

        def is_same(event: Event) -> bool:
            match event:
                case RunQueued(digests=digests) | FlowAccepted(digests=digests):
                    return same_request(digests, (words(),))
                case MessageRecorded(message=message):
                    return text_of(message) in {said.arguments.get("message"), ERASED}
                case _:
                    return False

        within = asked_within(service, self._caller, said.name, words, is_same)
        if within is None and self._number is not None:
            number, again = self._number
            return ids.derive(service.log.log_id, "run", self._caller.name, "door", number), again, ()
        return (None, False, ()) if within is None else (*within, (words(),))

    def _tool(self, name: str, requester: Requester) -> Tool:
        known = workshop(self._service.config, requester)
        asked = UseTool(tool=storable(name[:_NAME]))
        if name not in TOOLS:
            known = msgspec.structs.replace(known, missing=True)
        denial = judge_tool(asked, known)
        if denial is None:
            return TOOLS[name]
        if denial.code == "subagent_spawn":
            error = "a sub-agent can't start another, report back what is left to do"
            error = f"tool: {error} ({', '.join(denial.settings)})"
        else:
            had = ", ".join(self._names(requester)) or "none"
            error = f"tool: there is no {name[:_NAME]!r} here, use one of {had}"
        raise ToolRefused(denial.code, error, judged=Judgement(asked, known))

    # --- its record in the transcript

    def _record_call(self, said: _CallIdentity) -> _Recording | None:
        recorder, block = self._recorder, said.recorded
        if recorder is None or self._before is None or block is None:
            return None
        call_id = f"{self._before.own}{said.number}"
        before = self._before.found(call_id, said.words, said.time)
        if before is not None:
            return _Recording(self._service, recorder, before.call_id, before)
        # Of a worker it may come a second time, though nobody remembers the first: it has the same id.
        recorder.tool_calls((ToolCallBlock(id=call_id, name=said.name, arguments=block.arguments),), 1)
        return _Recording(self._service, recorder, call_id)


def _nothing() -> None:
    """Do nothing when the wait for a person is over."""


def _record_result(begun: _Begun, name: str, result: Result) -> None:
    recording = begun.recording
    if recording is None:
        return
    is_error = result.get("status") in {"error", "forbidden"}
    try:
        with recording.service.refusing_without_store:
            recording.recorder.tool_result(recording.call_id, name, source_of(result), is_error, begun.judged)
    except ToolRefused as refused:
        # Else the attempt is over; its agent is talking to nobody.
        if refused.code == "unavailable":
            recording.service.store_failed(refused)


def _copied(arguments: JsonMapping | None) -> Result:
    """Return arguments as they are now. Anything but an object is refused when the call begins."""
    given: JsonValue = {} if arguments is None else arguments
    return {**given} if isinstance(given, Mapping) else given
