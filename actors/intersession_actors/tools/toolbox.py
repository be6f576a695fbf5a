"""The tools as one session has them: call, await, describe. What a run calls is recorded as it happens."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import msgspec

from intersession_actors.agents import Dialect
from intersession_actors.attachments import blocks_without_contents
from intersession_actors.errors import ToolRefused, refusing_without_store
from intersession_actors.policy import Requester, tools_for
from intersession_actors.service import MOST_GIVEN, AccessSummary, Caller, CallingRun, Service, TargetRefused
from intersession_actors.session import RecordMessages
from intersession_actors.tools.call import Answer, Pending, ordinals
from intersession_actors.tools.registry import TOOLS, Tool, schemas
from intersession_events import ids
from intersession_events.errors import StoreUnavailable
from intersession_events.facts import Block, Message, TextBlock, ToolCallBlock

Result = dict[str, Any]


class Tools:
    """The tools bound to a requester: a session (by key), or the operator (None). Made by `SessionSystem.tools`."""

    def __init__(
        self,
        service: Service,
        key: str | None,
        *,
        doors: Executor,
        name: str | None = None,
        credential: str | None = None,
        run: CallingRun | None = None,
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._service = service
        self._key = key
        self._name = name or key or "operator"
        self._credential = credential
        self._run = run
        self._doors = doors
        self._waiting = waiting
        self._next_ordinal = ordinals()

    @property
    def names(self) -> tuple[str, ...]:
        """The tools this session has (SPAWN-7)."""
        return self._names(self._service.requester(self._key))

    def _names(self, requester: Requester) -> tuple[str, ...]:
        config, key = self._service.config, requester.key
        if key is None:
            return tuple(TOOLS)
        return tools_for(
            config,
            key.agent_id,
            TOOLS,
            subagent=key.is_spawned,
            sandboxed=requester.sandboxed,
            may_spawn=not self._is_too_deep(requester),
        )

    def _is_too_deep(self, requester: Requester) -> bool:
        """Whether this is a sub-agent that starts none of its own (SPAWN-3)."""
        deepest = self._service.config.agents.defaults.subagents.max_spawn_depth
        return requester.key is not None and requester.key.is_spawned and requester.spawn_depth >= deepest

    def schemas(self, dialect: Dialect | str = "openai") -> list[dict[str, Any]]:
        """Describe the tools this session has, for `openai`, `anthropic`, `mcp` or plain `json-schema`."""
        return schemas(self.names, dialect)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Result:
        """Call a tool and return its answer, as a model sees it. A refusal is an answer; nothing is raised for it.

        Blocks the calling thread, for `sessions_send` up to its timeout. Never call it from a coroutine.
        """
        given = dict(arguments or {})
        ordinal = self._next_ordinal()
        with self._waiting():
            try:
                call_id = self._record_call(name, given, ordinal)
            except ToolRefused as refused:
                return dict(refused.as_result())
            result = self._finished(self._begin(name, given, ordinal))
            self._record_result(call_id, name, result)
        return result

    async def acall(self, name: str, arguments: Mapping[str, Any] | None = None) -> Result:
        """Call a tool and await its answer, without ever blocking the event loop."""
        return await (await self.abegin(name, arguments))

    async def abegin(
        self, name: str, arguments: Mapping[str, Any] | None = None
    ) -> Coroutine[Any, Any, Result]:
        """Call a tool, and return what its answer is awaited with. A call that is begun after that comes after it."""
        given = dict(arguments or {})
        ordinal = self._next_ordinal()

        def begin() -> tuple[str | None, Result | Pending]:
            try:
                call_id = self._record_call(name, given, ordinal)
            except ToolRefused as refused:
                return None, dict(refused.as_result())
            return call_id, self._begin(name, given, ordinal)

        try:
            with refusing_without_store():
                call_id, begun = await asyncio.get_running_loop().run_in_executor(self._doors, begin)
        except ToolRefused as refused:
            call_id, begun = None, dict(refused.as_result())
        return self._aanswer(call_id, name, begun)

    async def _aanswer(self, call_id: str | None, name: str, begun: Result | Pending) -> Result:
        loop = asyncio.get_running_loop()
        if isinstance(begun, Pending):
            with self._counted(begun):
                await asyncio.wait([asyncio.wrap_future(begun.future)], timeout=begun.timeout)
            try:
                result = await loop.run_in_executor(self._doors, begun.finish)
            except StoreUnavailable:
                result = begun.finish()  # closed meanwhile: what it has to say takes no time
        else:
            result = begun
        if call_id is not None:
            with suppress(StoreUnavailable):
                await loop.run_in_executor(self._doors, self._record_result, call_id, name, result)
        return result

    # --- one call

    def _begin(self, name: str, arguments: Result, ordinal: int) -> Result | Pending:
        try:
            with refusing_without_store():
                outcome = self._made(name, arguments, ordinal)
        except ToolRefused as refused:
            return dict(refused.as_result())
        return outcome.result if isinstance(outcome, Answer) else outcome

    def _made(self, name: str, arguments: Result, ordinal: int) -> Answer | Pending:
        caller = Caller(
            key=self._key,
            name=self._name,
            requester=self._service.requester(self._key),
            run=self._run,
            ordinal=ordinal,
        )
        refusal: ToolRefused | None = None
        try:
            return self._tool(name, caller.requester).call(self._service, caller, arguments)
        except ToolRefused as refused:
            refusal = refused
            raise
        finally:
            self._keep_receipt(name, arguments, caller, refusal)

    def _tool(self, name: str, requester: Requester) -> Tool:
        names = self._names(requester)
        if name not in names:
            if name == "sessions_spawn" and self._is_too_deep(requester):
                raise ToolRefused(
                    "subagent_spawn",
                    "tool: a sub-agent can't start another, report back what is left to do "
                    "(agents.defaults.subagents.maxSpawnDepth)",
                )
            had = ", ".join(names) or "none"
            raise ToolRefused("not_supported", f"tool: there is no {name!r} here, use one of {had}")
        return TOOLS[name]

    def _keep_receipt(
        self, name: str, arguments: Result, caller: Caller, refusal: ToolRefused | None
    ) -> None:
        summary = caller.summary
        if isinstance(refusal, TargetRefused):
            summary = AccessSummary(denied_targets=((refusal.given[:MOST_GIVEN], refusal.code),))
        elif refusal is not None and refusal.status == "forbidden":
            summary = AccessSummary(
                denied_targets=((str(arguments.get("agentId", ""))[:MOST_GIVEN], refusal.code),)
            )
        if summary is not None:
            correlation = self._run.root if self._run is not None else None
            self._service.receipts.keep(
                self._key, name, arguments, summary, correlation=correlation, credential=self._credential
            )

    def _finished(self, begun: Result | Pending) -> Result:
        if not isinstance(begun, Pending):
            return begun
        with self._counted(begun), suppress(TimeoutError):
            begun.future.result(begun.timeout)
        return begun.finish()

    def _counted(self, pending: Pending) -> AbstractContextManager[None]:
        return nullcontext() if pending.wait is None else self._service.wait_graph.until_over(pending.wait)

    # --- its record in the transcript

    def _record_call(self, name: str, arguments: Result, ordinal: int) -> str | None:
        if self._run is None or self._key is None:
            return None
        call_id = f"call_{ids.derive(self._service.log.log_id, 'call', self._run.run_id, self._run.attempt, ordinal)}"
        RunRecorder(self._service, self._key, self._run).tool_call(call_id, name, _source(arguments))
        return call_id

    def _record_result(self, call_id: str | None, name: str, result: Result) -> None:
        if call_id is None or self._run is None or self._key is None:
            return
        try:
            RunRecorder(self._service, self._key, self._run).tool_result(
                call_id, name, _source(result), result.get("status") in {"error", "forbidden"}
            )
        except ToolRefused:
            return  # the attempt is over; its agent is talking to nobody


class RunRecorder:
    """Puts what an agent does during a run into its session's transcript, durable before it goes on."""

    def __init__(self, service: Service, key: str, run: CallingRun) -> None:
        self._service = service
        self._key = key
        self._run = run

    def said(self, blocks: Any) -> None:
        """Record what the model said beside a tool call."""
        self._record("assistant", tuple(blocks), core_id="said")

    def tool_call(self, call_id: str, name: str, arguments_json: str) -> None:
        """Record that a tool is about to be called."""
        block: Block = ToolCallBlock(id=call_id, name=name, arguments=arguments_json)
        self._record("assistant", (block,), core_id=f"call:{call_id}")

    def tool_result(self, call_id: str, name: str, content: str, is_error: bool) -> None:
        """Record what a tool gave."""
        self._record(
            "toolResult",
            (TextBlock(text=content),),
            core_id=f"result:{call_id}",
            tool_call_id=call_id,
            tool_name=name,
            is_error=is_error,
        )

    def _record(self, role: Any, content: tuple[Block, ...], *, core_id: str, **fields: Any) -> None:
        service, run = self._service, self._run
        message = Message(
            id=service.new_id()
            if core_id == "said"
            else ids.derive(service.log.log_id, "message", run.run_id, run.attempt, core_id),
            role=role,
            content=blocks_without_contents(content),
            timestamp=service.clock.now_ms(),
            run_id=run.run_id,
            **fields,
        )
        service.ask_session(
            self._key, RecordMessages(run_id=run.run_id, attempt=run.attempt, messages=(message,))
        )


def _source(value: Any) -> str:
    """Return JSON source text for the record; what can't be JSON is refused elsewhere."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return msgspec.json.encode(ascii(value)).decode()
