"""The gateway's methods: the one surface of Python, WebSocket and command line (GATE)."""

from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, Final

from intersession_actors.errors import ToolRefused, refusing_without_store
from intersession_actors.methods.about import GatewayAbout, GatewayImport
from intersession_actors.methods.runs import GatewayRuns
from intersession_actors.methods.sessions import GatewaySessions
from intersession_actors.methods.targets import Targets
from intersession_actors.service import (
    OPERATOR,
    AccessSummary,
    GatewayCaller,
    Imports,
    Judged,
    RunDoor,
    Service,
    TargetRefused,
)
from intersession_projections.run_outcomes import RunOutcome

Result = dict[str, Any]
Method = Callable[[GatewayCaller, Mapping[str, Any]], Result]

READING: Final = frozenset({"chat.history", "sessions.list", "sessions.preview", "sessions.resolve"})
"""Methods that show sessions, and so leave a receipt (VIS-4). What the others did is in the log as it is."""


class Gateway:
    """The methods by name: `gateway.call("agent.wait", {"runId": …})`. Without a caller the operator calls."""

    def __init__(
        self,
        service: Service,
        runs: RunDoor,
        doors: Executor,
        describe: Callable[[], Result] = dict,
        imports: Imports | None = None,
    ) -> None:
        targets = Targets(service)
        self._receipts = service.receipts
        self._doors = doors
        self._runs = GatewayRuns(service, targets, runs)
        sessions = GatewaySessions(service, targets)
        about = GatewayAbout(service, targets, describe)
        self._methods: Final[Mapping[str, Method]] = {
            "agent": self._runs.agent,
            "agent.identity.get": about.identity,
            "agent.wait": self._runs.wait,
            "agents.list": about.agents_list,
            "chat.abort": self._runs.chat_abort,
            "chat.history": sessions.chat_history,
            "chat.inject": sessions.chat_inject,
            "chat.send": self._runs.chat_send,
            "health": about.health,
            "import.openclaw": GatewayImport(imports or Imports(service)).openclaw,
            "models.list": about.models_list,
            "send": about.send,
            "sessions.delete": sessions.delete,
            "sessions.list": sessions.list,
            "sessions.patch": sessions.patch,
            "sessions.preview": sessions.preview,
            "sessions.reset": sessions.reset,
            "sessions.resolve": sessions.resolve,
            "status": about.status,
        }

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of all methods."""
        return tuple(self._methods)

    def call(
        self, method: str, params: Mapping[str, Any] | None = None, *, caller: GatewayCaller = OPERATOR
    ) -> Result:
        """Call a method and return its result. A refusal is a result: `{status, code, error}`."""
        try:
            return self.perform(method, params, caller=caller)
        except ToolRefused as refused:
            return dict(refused.as_result())

    async def acall(
        self, method: str, params: Mapping[str, Any] | None = None, *, caller: GatewayCaller = OPERATOR
    ) -> Result:
        """Call a method without blocking the event loop. A refusal is a result."""
        try:
            return await self.aperform(method, params, caller=caller)
        except ToolRefused as refused:
            return dict(refused.as_result())

    def perform(
        self, method: str, params: Mapping[str, Any] | None = None, *, caller: GatewayCaller = OPERATOR
    ) -> Result:
        """Call a method and return its result.

        Raises:
            ToolRefused: the call was refused.
        """
        found = self._methods.get(method)
        if found is None:
            known = ", ".join(self._methods)
            # The original's clients look for these two words.
            raise ToolRefused("invalid_request", f"unknown method: {method[:128]!r}, use one of {known}")
        given: Mapping[str, Any] = {} if params is None else params
        with refusing_without_store(), self._receipt(method, given, caller) as asking:
            return found(asking, given)

    async def aperform(
        self, method: str, params: Mapping[str, Any] | None = None, *, caller: GatewayCaller = OPERATOR
    ) -> Result:
        """Call a method without blocking the event loop; who waits for a run holds no thread.

        Raises:
            ToolRefused: the call was refused.
        """
        import asyncio  # noqa: PLC0415 - only async hosts need it

        if method == "agent.wait":
            given: Mapping[str, Any] = {} if params is None else params
            with refusing_without_store(), self._receipt(method, given, caller) as asking:
                return await self._runs.await_run(asking, given, self._doors)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._doors, lambda: self.perform(method, params, caller=caller))

    async def await_end(self, run_id: str) -> RunOutcome:
        """Return a run once it has ended, however long that takes: the second answer of `agent`.

        Raises:
            ToolRefused: there is no such run (`unknown_run`).
        """
        return await self._runs.await_end(run_id, self._doors)

    @contextmanager
    def _receipt(
        self, method: str, params: Mapping[str, Any], caller: GatewayCaller
    ) -> Generator[GatewayCaller]:
        """Keep a receipt of what a call showed, and of what it was denied whatever it wanted to do (VIS-4)."""
        judged = Judged()
        asking = caller.noting(judged)
        refused = True
        try:
            yield asking
            refused = False
        except TargetRefused as refusal:
            asking.was_denied(refusal.given, refusal.code)
            raise
        finally:
            if judged.denied_targets or (method in READING and not refused):
                summary = AccessSummary(
                    keys=() if refused else tuple(judged.keys),
                    denied=judged.denied,
                    denied_targets=tuple(judged.denied_targets),
                )
                self._receipts.keep(None, method, params, summary, credential=asking.credential)
