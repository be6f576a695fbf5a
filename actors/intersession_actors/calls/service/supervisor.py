"""The supervisor: wakes session actors on their first message, restarts failed actors from the log, stops all in order.

Sessions asleep cost nothing: an address exists while the actor does. An actor that fails is started again from the log, three
times in five seconds; then its session is `degraded`: reading goes on, what is told to it is refused and says so.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import pykka

from intersession_actors.owners.streams.commands import (
    Command,
    OfOneLife,
    Refused,
    Request,
    SessionReadBack,
    Step,
    refusal_of,
)
from intersession_actors.owners.streams.owner import answer
from intersession_actors.owners.streams.shell import Failures
from intersession_actors.rules.errors import RefusalCode, ToolRefused, refused_by
from intersession_actors.running.failures.reports import Reports
from intersession_actors.running.runtime.actor import Failure, Handler, Ref
from intersession_actors.running.runtime.inbox import InboxFull
from intersession_actors.running.runtime.runtime import Runtime, RuntimeStopped


class Recipe(NamedTuple):
    """How an actor is made, each time anew: its class and its parts."""

    actor: type[Handler]
    parts: tuple[object, ...]


class Supervisor:
    """Keeps the addresses of all actors. Its methods may be called from any thread."""

    def __init__(
        self, runtime: Runtime, *, reports: Reports, monotonic: Callable[[], float], inbox_limit: int = 1_000
    ) -> None:
        self._runtime = runtime
        self._reports = reports
        self._monotonic = monotonic
        self._inbox_limit = inbox_limit
        self._lock = threading.Lock()
        self._sessions: dict[str, Ref] = {}
        self._session: Recipe | None = None
        self._recipes: Mapping[str, Recipe] = {}
        self._managers: dict[str, Ref] = {}
        self._recover: Callable[[str], None] = _nothing
        self._failures: dict[str, Failures] = {}
        self._degraded: dict[str, str] = {}
        self._given_up_on: dict[str, ToolRefused] = {}
        """What is answered for a session that was given up."""
        self._stopping = False
        self._on_failure: Final = self._failed
        """Made once, since all actors have it."""

    @property
    def degraded(self) -> dict[str, str]:
        """The actors that were given up, by session key, manager prefix or flow stream, and the last error."""
        with self._lock:
            return dict(self._degraded)

    @property
    def live_sessions(self) -> int:
        """How many session actors are awake."""
        with self._lock:
            return len(self._sessions)

    def start(
        self, *, session: Recipe, managers: Mapping[str, Recipe], recover: Callable[[str], None]
    ) -> None:
        """Start the process managers, by the prefix of their streams; afterwards sessions can be woken.

        `session` makes a session's actor, with the session's key as its last argument. `recover` tells a manager that was started
        again what is open.
        """
        with self._lock:
            self._session, self._recipes, self._recover = session, managers, recover
            for prefix in managers:
                self._managers[prefix] = self._new_manager(prefix)

    def _new_manager(self, prefix: str) -> Ref:
        recipe = self._recipes[prefix]
        return self._runtime.start(recipe.actor, *recipe.parts, name=prefix, on_failure=self._on_failure)

    def tell_flow(self, stream: str, command: Command) -> None:
        """Tell the manager of a stream."""
        prefix = stream.partition(":")[0]
        while True:
            with self._lock:
                manager = self._managers.get(prefix)
                reason = self._degraded.get(prefix)
            if reason is not None:
                self._refuse(command, f"the {prefix} manager is degraded: {reason}")
                return
            if manager is None:
                return  # an append may carry streams that nobody manages
            try:
                manager.tell(command, urgent=True)
            except pykka.ActorDeadError:
                if self._stopping or not self._replaced(prefix, manager):
                    self._refuse(command, "the system is stopping")
                    return
                continue
            return

    def _replaced(self, prefix: str, dead: Ref) -> bool:
        """Make sure that a dead manager has a successor, or was given up on; False if no actors are started any more."""
        with self._lock:
            if prefix in self._degraded:
                return True
            if self._managers[prefix] is dead:
                try:
                    self._managers[prefix] = self._new_manager(prefix)
                except RuntimeStopped:
                    return False
                # A new manager tries again what the one before it had set aside.
                for stream in [name for name in self._degraded if name.startswith(f"{prefix}:")]:
                    del self._degraded[stream]
        return True

    def tell_session(self, key: str, command: Command) -> None:
        """Tell a session's actor, waking it from the log if it sleeps."""
        while True:
            with self._lock:
                refused = self._given_up_on.get(key)
                ref = None if refused is not None else self._sessions.get(key) or self._awake(key)
            if refused is not None:
                self._refuse(command, refused.error, code=refused.code, to_flow=refused.code)
                return
            if ref is None:
                self._refuse(command, "the system is stopping")
                return
            try:
                # The inbox's bound holds for what somebody outside asked for.
                ref.tell(command, urgent=not isinstance(command, Request) or command.answer is None)
            except InboxFull:
                self._refuse(
                    command, "the session has too many messages waiting, try again later", code="busy"
                )
                return
            except pykka.ActorDeadError:
                self._forget(key, ref)
                continue
            return

    def set_aside(self, stream: str, reason: str) -> None:
        """Note that a flow can't go on; its manager serves the others."""
        with self._lock:
            self._degraded[stream] = reason

    def tell_awake(self, key: str, command: Command) -> None:
        """Tell a session's actor if it is awake; a sleeping one reads the log when it wakes."""
        with self._lock:
            awake = key in self._sessions
        if awake:
            self.tell_session(key, command)

    def passivated(self, key: str) -> None:
        """Note that a session's actor went to sleep."""
        with self._lock:
            ref = self._sessions.get(key)
            if ref is not None and not ref.is_alive():
                del self._sessions[key]

    def stop(self, timeout: float) -> tuple[str, ...]:
        """Stop all actors in order; return the names of those that did not stop in time."""
        self._stopping = True
        return self._runtime.stop(timeout)

    def _awake(self, key: str) -> Ref | None:
        """Start the actor of a session that sleeps; None if none is started any more. Under the lock."""
        if self._stopping or self._session is None:
            return None
        try:
            ref = self._sessions[key] = self._runtime.start(
                self._session.actor,
                *self._session.parts,
                key,
                name=key,
                inbox_limit=self._inbox_limit,
                on_failure=self._on_failure,
            )
        except RuntimeStopped:
            return None
        return ref

    def _forget(self, key: str, ref: Ref) -> None:
        with self._lock:
            if self._sessions.get(key) is ref:
                del self._sessions[key]

    def _failed(self, failure: Failure) -> None:
        """Start an actor again from the log, or give it up."""
        name, now = failure.ref.name, self._monotonic()
        with self._lock:
            given_up = self._failures.setdefault(name, Failures()).too_many(now)
            if given_up:
                reason = self._degraded[name] = f"{type(failure.error).__name__}: {failure.error}"
                self._given_up_on[name] = refused_by(failure.error, f"the session is degraded: {reason}")
            if self._sessions.get(name) is failure.ref:
                del self._sessions[name]
            is_manager = name in self._managers
        self._reports.tell(
            "actor_given_up" if given_up else "actor_restarted", actor=name, error=failure.error
        )
        message = failure.message
        if isinstance(message, Command):
            # A flow is told again below (`SessionReadBack`): the step may be in the log, or can be taken yet.
            refused = refused_by(failure.error, f"it failed: {failure.error}")
            self._refuse(message, refused.error, code=refused.code, to_flow=None)
        if is_manager and not given_up and not self._stopping:
            if self._replaced(name, failure.ref):
                self._recover(name)
        elif not self._stopping and not is_manager:
            self._again(name)
        for mail in failure.left:
            if isinstance(mail.message, Command) and not isinstance(mail.message, OfOneLife):
                if is_manager:
                    self.tell_flow(f"{name}:", mail.message)
                else:
                    self.tell_session(name, mail.message)

    def _again(self, key: str) -> None:
        """Wake a session at once: it may have been in the middle of a run, and of a flow's step."""
        with self._lock:
            if key not in self._degraded and key not in self._sessions:
                self._awake(key)
        self.read_back(key, lost=True)

    def read_back(self, key: str, *, lost: bool = False) -> None:
        """Tell the flows of a session their events from the log; return whether earlier messages to it are `lost`."""
        for prefix in list(self._managers):
            self.tell_flow(f"{prefix}:", SessionReadBack(key=key, lost=lost))

    def _refuse(
        self,
        command: Command,
        error: str,
        *,
        code: RefusalCode = "unavailable",
        to_flow: RefusalCode | None = "unavailable",
    ) -> None:
        """Tell the waiting caller of a command that it has no effect: a door, or a flow whose step it was."""
        answer(command, Refused(code=code, error=error))
        if isinstance(command, Step) and command.flow is not None and to_flow is not None:
            refused = Refused(code=to_flow, error=error)
            self.tell_flow(command.flow, refusal_of(command, command.flow, refused))


def _nothing(_prefix: str) -> None:
    return
