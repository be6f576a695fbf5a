"""All methods by name: the one surface of Python, WebSocket and command line (GATE)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple, overload

import msgspec

from intersession_actors.assembly.forgetting.retention import Retention
from intersession_actors.assembly.methods.about import GatewayAbout
from intersession_actors.assembly.methods.copying import GatewayCopies
from intersession_actors.assembly.methods.debug import GatewayDebug, GatewayFiles, GatewayNotes
from intersession_actors.assembly.methods.erasing import GatewayErase
from intersession_actors.assembly.methods.forking import GatewayForks
from intersession_actors.assembly.methods.holding import GatewayHolds
from intersession_actors.assembly.methods.retrying import GatewayRetries
from intersession_actors.assembly.methods.runs import GatewayRuns
from intersession_actors.assembly.methods.schedules import GatewaySchedules
from intersession_actors.assembly.methods.sessions import GatewaySessions
from intersession_actors.assembly.methods.targets import Targets
from intersession_actors.assembly.methods.terms import in_terms_of_methods
from intersession_actors.assembly.methods.working import GatewayWork
from intersession_actors.assembly.schedules.scheduler import Scheduler
from intersession_actors.calls.service.callers import OPERATOR, AccessSummary, Call, Caller
from intersession_actors.calls.service.imports import Imports
from intersession_actors.calls.service.pending import Pending, Result, afinished, finished, handed_on
from intersession_actors.calls.service.resolve import TargetRefused
from intersession_actors.calls.service.run_waits import RunDoor
from intersession_actors.calls.service.service import Service
from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
from intersession_actors.hindsight.forking import on_call
from intersession_actors.hindsight.forking.door import ForkDoor
from intersession_actors.outside.workers.remote import RemoteAgents
from intersession_actors.rules.answers import AcceptedAnswer, ChatHistoryAnswer, RunAnswer
from intersession_actors.rules.config.host import OperatorScope
from intersession_actors.rules.errors import ToolRefused, not_on_a_loop
from intersession_actors.rules.policy.questions import check_called
from intersession_actors.running.host.door_threads import ABOUT, DoorThreads, LimitedLane
from intersession_events.basics.plain_json import JsonMapping, JsonObject, JsonValue
from intersession_events.proofs.signatures import PrivateKey
from intersession_projections.views.run_outcomes.outcome import RunOutcome

OptionalParams = JsonMapping | None
"""Parameters; none are an empty object."""

Method = Callable[[Call, JsonMapping], Result | Pending]


class Parts(NamedTuple):
    """The parts that methods belong to."""

    runs: GatewayRuns
    retries: GatewayRetries
    holds: GatewayHolds
    sessions: GatewaySessions
    schedules: GatewaySchedules
    about: GatewayAbout
    files: GatewayFiles
    erasing: GatewayErase
    forks: GatewayForks
    notes: GatewayNotes
    debug: GatewayDebug
    work: GatewayWork
    copies: GatewayCopies


class Registered(msgspec.Struct, frozen=True):
    """A method: its scope, its part, and whether it shows sessions.

    What shows sessions leaves a receipt (VIS-4). What the others did is in the log as it is. What is `about` the system is
    answered though all that doors share is busy. What is `read` is answered from the log and the settings, by any host that
    follows the log. Of the others, `again` says that a second call counts no more than the first: its key says that it is the
    same, or it changes nothing then (DOOR-2). Of what is called again and again one receipt an hour is left: `hourly`.
    """

    scope: OperatorScope
    of: Callable[[Parts], Method]
    shows: bool = False
    about: bool = False
    read: bool = False
    again: bool = False
    hourly: bool = False


def _debugging(verb: str) -> Callable[[Parts], Method]:
    return lambda parts: parts.debug.verb(verb)


METHODS: Final[Mapping[str, Registered]] = {
    "agent": Registered("operator.write", lambda parts: parts.runs.agent, again=True),
    "agent.identity.get": Registered("operator.read", lambda parts: parts.about.identity, read=True),
    "agent.wait": Registered("operator.read", lambda parts: parts.runs.begin_wait, read=True),
    "agents.list": Registered("operator.read", lambda parts: parts.about.agents_list, again=True),
    "bundles.make": Registered("operator.read", lambda parts: parts.files.bundle, shows=True, again=True),
    "calls.held": Registered(
        "operator.approvals", lambda parts: parts.holds.held_calls, shows=True, read=True
    ),
    "calls.release": Registered("operator.approvals", lambda parts: parts.holds.release_call, again=True),
    "chat.abort": Registered("operator.write", lambda parts: parts.runs.chat_abort, again=True),
    "chat.history": Registered(
        "operator.read", lambda parts: parts.sessions.chat_history, shows=True, read=True
    ),
    "chat.inject": Registered("operator.admin", lambda parts: parts.sessions.chat_inject),
    "chat.send": Registered("operator.write", lambda parts: parts.runs.chat_send, again=True),
    "checkpoints.take": Registered("operator.admin", lambda parts: parts.about.checkpoint, again=True),
    "copies.at": Registered("copy", lambda parts: parts.copies.at, read=True),
    "copies.file": Registered("copy", lambda parts: parts.copies.file, read=True),
    "copies.files": Registered("copy", lambda parts: parts.copies.files, read=True),
    "copies.known": Registered("copy", lambda parts: parts.copies.known, read=True),
    "copies.rows": Registered("copy", lambda parts: parts.copies.rows, shows=True, read=True, hourly=True),
    "cron.list": Registered("operator.read", lambda parts: parts.schedules.list, shows=True, read=True),
    "cron.run": Registered("operator.admin", lambda parts: parts.schedules.run),
    "cron.runs": Registered("operator.read", lambda parts: parts.schedules.runs, shows=True, read=True),
    "cron.status": Registered("operator.read", lambda parts: parts.schedules.status, again=True),
    "cron.update": Registered("operator.admin", lambda parts: parts.schedules.update, again=True),
    "deliveries.retry": Registered("operator.admin", lambda parts: parts.about.retry_delivery),
    "exchanges.held": Registered("operator.approvals", lambda parts: parts.holds.held, shows=True, read=True),
    "exchanges.hold": Registered("operator.approvals", lambda parts: parts.holds.hold, again=True),
    "exchanges.release": Registered("operator.approvals", lambda parts: parts.holds.release),
    "exports.make": Registered("operator.read", lambda parts: parts.files.export, shows=True, read=True),
    "forks.list": Registered("operator.read", lambda parts: parts.forks.list, shows=True, again=True),
    "forks.make": Registered("operator.fork", lambda parts: parts.forks.make),
    "forks.remove": Registered("operator.fork", lambda parts: parts.forks.remove, again=True),
    "health": Registered("operator.read", lambda parts: parts.about.health, about=True, read=True),
    "import.openclaw": Registered("operator.admin", lambda parts: parts.about.import_openclaw),
    "import.framework": Registered("operator.admin", lambda parts: parts.about.import_framework),
    "models.list": Registered("operator.read", lambda parts: parts.about.models_list, read=True),
    "notes.pin": Registered("operator.write", lambda parts: parts.notes.pin),
    "people.forget": Registered("operator.admin", lambda parts: parts.erasing.forget, again=True),
    "retention.apply": Registered("operator.admin", lambda parts: parts.erasing.apply_retention, again=True),
    "runs.retry": Registered("operator.write", lambda parts: parts.retries.retry, again=True),
    "send": Registered("operator.write", lambda parts: parts.about.send, again=True),
    "sessions.compact": Registered("operator.admin", lambda parts: parts.sessions.compact, again=True),
    "sessions.delete": Registered("operator.admin", lambda parts: parts.sessions.delete),
    "sessions.erase": Registered("operator.admin", lambda parts: parts.erasing.erase, again=True),
    "sessions.list": Registered("operator.read", lambda parts: parts.sessions.list, shows=True, read=True),
    "sessions.patch": Registered("operator.admin", lambda parts: parts.sessions.patch, again=True),
    "sessions.preview": Registered(
        "operator.read", lambda parts: parts.sessions.preview, shows=True, read=True
    ),
    "sessions.reset": Registered("operator.admin", lambda parts: parts.sessions.reset),
    "sessions.resolve": Registered(
        "operator.read", lambda parts: parts.sessions.resolve, shows=True, read=True
    ),
    "status": Registered("operator.read", lambda parts: parts.about.status, about=True, again=True),
    "usage.budgets": Registered("operator.read", lambda parts: parts.about.budgets, again=True),
    "worker.act": Registered("worker", lambda parts: parts.work.act),
    "worker.announce": Registered("worker", lambda parts: parts.work.announce),
    "worker.answer": Registered("worker", lambda parts: parts.work.answer),
    "worker.events": Registered("worker", lambda parts: parts.work.events),
    "worker.leave": Registered("worker", lambda parts: parts.work.leave),
    "worker.next": Registered("worker", lambda parts: parts.work.next),
    "worker.renew": Registered("worker", lambda parts: parts.work.renew, about=True),
    "worker.take": Registered("worker", lambda parts: parts.work.take),
    **{
        f"debug.{verb}": Registered("operator.read", _debugging(verb), shows=True, read=True)
        for verb in VERBS
    },
}
"""All methods, by name; each verb of the debugger is one."""


def unknown_method(method: object, known: Iterable[str]) -> ToolRefused:
    """Return the refusal of an unknown method; the original's clients look for its first two words."""
    shown = f"{method[:128]!r}" if isinstance(method, str) else f"a {type(method).__name__}"
    return ToolRefused("invalid_request", f"unknown method: {shown}, use one of {', '.join(sorted(known))}")


class GatewayMethods:
    """The value of `system.gateway`: `gateway.call("agent.wait", {"runId": …})`. `perform` is for callers with fewer rights than the operator.

    `threads` block for coroutines; `describe` gives what only the system knows of itself, `standing` what of that needs no
    log, `checkpoint` takes one, `key` signs bundles, `retention` removes words for good, also by their age, `scheduler` runs
    scheduled jobs, `workers` are the agents that workers have.
    """

    def __init__(
        self,
        service: Service,
        runs: RunDoor,
        *,
        threads: DoorThreads,
        describe: Callable[[], Result],
        standing: Callable[[], Result],
        checkpoint: Callable[[], JsonObject],
        key: PrivateKey | None,
        imports: Imports,
        forks: ForkDoor,
        retention: Retention,
        scheduler: Scheduler,
        workers: RemoteAgents | None,
    ) -> None:
        targets = Targets(service)
        self._service = service
        self._threads = threads
        self._runs = GatewayRuns(service, targets, runs)
        self._debug = GatewayDebug(service)
        parts = Parts(
            self._runs,
            GatewayRetries(service, targets),
            GatewayHolds(service, targets),
            GatewaySessions(service, targets),
            GatewaySchedules(service, scheduler),
            GatewayAbout(
                service,
                targets,
                describe=describe,
                standing=standing,
                checkpoint=checkpoint,
                imports=imports,
            ),
            GatewayFiles(self._debug, cover=lambda: int(checkpoint()["position"]), key=key),
            GatewayErase(service, targets, retention),
            GatewayForks(service.reader, forks),
            GatewayNotes(service),
            self._debug,
            GatewayWork(service, workers, threads),
            GatewayCopies(service),
        )
        self._methods: Final[Mapping[str, Method]] = {
            name: registered.of(parts) for name, registered in METHODS.items()
        }

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of all methods."""
        return tuple(self._methods)

    @overload
    def call(
        self, method: Literal["agent", "chat.send", "runs.retry"], params: OptionalParams = None
    ) -> AcceptedAnswer: ...
    @overload
    def call(self, method: Literal["agent.wait"], params: OptionalParams = None) -> RunAnswer: ...
    @overload
    def call(self, method: Literal["chat.history"], params: OptionalParams = None) -> ChatHistoryAnswer: ...
    @overload
    def call(self, method: str, params: OptionalParams = None) -> JsonValue: ...
    def call(self, method: str, params: OptionalParams = None) -> JsonValue:
        """Call a method as the operator, and return its result. A refusal is a result: `{status, code, error}`."""
        try:
            return self.perform(method, params)
        except ToolRefused as refused:
            return dict(in_terms_of_methods(refused).as_result())

    @overload
    async def acall(
        self, method: Literal["agent", "chat.send", "runs.retry"], params: OptionalParams = None
    ) -> AcceptedAnswer: ...
    @overload
    async def acall(self, method: Literal["agent.wait"], params: OptionalParams = None) -> RunAnswer: ...
    @overload
    async def acall(
        self, method: Literal["chat.history"], params: OptionalParams = None
    ) -> ChatHistoryAnswer: ...
    @overload
    async def acall(self, method: str, params: OptionalParams = None) -> JsonValue: ...
    async def acall(self, method: str, params: OptionalParams = None) -> JsonValue:
        """Call a method as the operator, without blocking the event loop. A refusal is a result."""
        try:
            return await self.aperform(method, params)
        except ToolRefused as refused:
            return dict(in_terms_of_methods(refused).as_result())

    def perform(self, method: str, params: OptionalParams = None, *, caller: Caller = OPERATOR) -> Result:
        """Call a method and return its result.

        Raises:
            ToolRefused: the call was refused.
            CalledOnLoop: this is a coroutine.
        """
        not_on_a_loop("gateway.call(…)", "await gateway.acall(…)")
        with self._service.refusing_without_store:
            return finished(self._begin(method, params or {}, caller), self._service.blocking)

    async def aperform(
        self, method: str, params: OptionalParams = None, *, caller: Caller = OPERATOR
    ) -> Result:
        """Call a method without blocking the event loop; a caller that waits for a run holds no thread.

        Raises:
            ToolRefused: the call was refused.
        """
        with self._service.refusing_without_store:
            given = params or {}
            begun = await self._threads.run(
                lambda: self._begin(method, given, caller), _lane(method, given, caller)
            )
            return await afinished(begun, self._threads)

    async def await_end(self, run_id: str) -> RunOutcome:
        """Return a run once it has ended, without a time limit: the second answer of `agent`.

        Raises:
            ToolRefused: there is no such run (`unknown_run`).
        """
        return await self._runs.await_end(run_id, self._threads)

    def _begin(self, method: str, params: JsonMapping, caller: Caller) -> Result | Pending:
        is_name = isinstance(method, str)  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        found = self._methods.get(method) if is_name else None
        if found is None:
            raise unknown_method(method, self._methods)
        writer = self._service.writer
        if writer is not None and not METHODS[method].read:
            return handed_on(self._service.log, writer, caller, method, params)
        call = Call(caller, self._service.reader.requester(None))
        registered = METHODS[method]
        view = method if registered.hourly else None
        with self._receipt(method, params, call, shows=registered.shows, view=view):
            check_called(method, params, is_operator=caller.is_operator)
            return found(call, params)

    async def aask(
        self,
        name: str,
        params: JsonMapping,
        question: Callable[[on_call.View], Mapping[str, object]],
        *,
        caller: Caller = OPERATOR,
        view: str | None = None,
    ) -> Mapping[str, object]:
        """Answer a question about the log as a caller sees it, without blocking the event loop. For doors with more questions than verbs.

        A receipt is left of what shows a session, under its name, with what was asked for in `params`. Of a `view` that is asked
        for again and again, as a page does that follows the log, one is left for the same sessions in an hour.

        Raises:
            ToolRefused: the question was refused.
        """

        def asked() -> Mapping[str, object]:
            call = Call(caller, self._service.reader.requester(None))
            with self._receipt(name, params, call, shows=True, view=view):
                return self._debug.ask(call, question)

        with self._service.refusing_without_store:
            lane = (caller.name, name) if caller.credential is None else LimitedLane(caller.name)
            return await self._threads.run(asked, lane)

    @contextmanager
    def _receipt(
        self, method: str, params: JsonMapping, call: Call, *, shows: bool, view: str | None = None
    ) -> Generator[None]:
        """Record a receipt of what a call showed, and of what it was denied in any case (VIS-4)."""
        refused = True
        try:
            yield
            refused = False
        except TargetRefused as refusal:
            call.was_denied(refusal.given, refusal.code, refusal.judged)
            raise
        finally:
            summary = call.summary or AccessSummary()
            if summary.denied_targets or (shows and not refused and (summary.keys or method in METHODS)):
                # Nothing was shown of what a refused call had found.
                shown = msgspec.structs.replace(summary, keys=()) if refused else summary
                self._service.receipts.keep(call.caller, method, params, shown, view=view)


def _lane(method: str, params: Mapping[str, object], caller: Caller) -> Hashable:
    """Return the lane of a call: the caller's, for each session it names. Calls about the system never wait."""
    found = METHODS.get(method)
    if found is not None and found.about:
        return ABOUT
    if caller.credential is not None:
        return LimitedLane(caller.name)
    return (caller.name, repr(params.get("sessionKey", params.get("key"))))
