"""What every door works with: the log, its views, the actors, the configuration in force. Wired by the system."""

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

import msgspec

from intersession_actors.config import Config
from intersession_actors.errors import LimitReached, ToolRefused
from intersession_actors.policy import Requester
from intersession_actors.runtime import Clock
from intersession_actors.service.callers import CallingRun
from intersession_actors.service.reader import Reader
from intersession_actors.service.receipts import Receipts
from intersession_actors.service.supervisor import Supervisor
from intersession_actors.service.waits import OneAtATime, RunWaits, WaitGraph
from intersession_actors.session import Patch
from intersession_actors.streams import Accepted, Command, Refused, StepTaken, World, append_of
from intersession_events import ids
from intersession_events.errors import AppendConflict, StoreUnavailable
from intersession_events.facts import DeliveryDecided, Purpose, Route, SessionOpened
from intersession_events.keys import SessionKey
from intersession_events.log import Log, StreamAppend
from intersession_events.stores import MEMORY
from intersession_projections.flows import Flows
from intersession_projections.run_outcomes import RunOutcome, Runs
from intersession_projections.sessions import SessionRow, Sessions, ThreadBindings

COMMIT_TIMEOUT_S = 30.0
"""How long a door waits for the log to take a command."""


class Service:
    """The one place that all doors ask."""

    def __init__(
        self,
        *,
        log: Log,
        clock: Clock,
        new_id: Callable[[], str],
        world: World,
        supervisor: Supervisor,
        reader: Reader,
        receipts: Receipts,
    ) -> None:
        self.log = log
        self.clock = clock
        self.new_id = new_id
        self.world = world
        self.supervisor = supervisor
        self.reader = reader
        self.sessions: Sessions = reader.sessions
        self.runs: Runs = reader.runs
        self.flows: Flows = reader.flows
        self.receipts = receipts
        self.wait_graph = WaitGraph(clock.monotonic)
        self.waits = RunWaits(log, self.wait_graph.run_ended)
        self.spawning = OneAtATime()
        self.threads = ThreadBindings(log)

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self.reader.config

    @property
    def store_path(self) -> str:
        """The log's file; `:memory:` for a log that is none."""
        path: str = getattr(self.log, "path", MEMORY)
        return path

    def main_key(self, agent_id: str) -> SessionKey:
        """Return an agent's main session; with the global scope the one of the default agent (KEY-4)."""
        session = self.config.session
        owner = self.config.default_agent if session.scope == "global" else agent_id
        return SessionKey.main(owner, session.main_key)

    def requester(self, key: str | None) -> Requester:
        """Return who asks: a session, or the operator (None)."""
        return self.reader.requester(key)

    def opening(self, key: SessionKey, *, by: str, **fields: Any) -> SessionOpened:
        """Return the event that opens a session, with an id of its own and the sandbox as configured (SPAWN-5)."""
        return SessionOpened(
            key=str(key),
            session_id=self.new_id(),
            agent_id=key.agent_id,
            opened_by=by,  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
            chat_type=fields.pop("chat_type", None) or key.chat_type,
            channel=fields.pop("channel", None) or key.channel,
            sandboxed=fields.pop("sandboxed", None) or self.config.sandboxed(key.agent_id, main=key.is_main),
            **fields,
        )

    def run_id(
        self, *, caller: str, method: str, key: str | None, calling: CallingRun | None, ordinal: int
    ) -> str:
        """Return the id of a run that is asked for: derived where that can be, else random (design, rule 4)."""
        log_id = self.log.log_id
        if key is not None:
            return ids.derive(log_id, "run", caller, method, key)
        if calling is not None:
            return ids.derive(log_id, "run", calling.run_id, calling.attempt, ordinal)
        return self.new_id()

    def ask(
        self, tell: Callable[[Command], None], command: Command, *, timeout: float = COMMIT_TIMEOUT_S
    ) -> Accepted:
        """Tell a command and wait until it is durable.

        Raises:
            ToolRefused: it was refused, or the log did not take it in time (`unavailable`).
        """
        future: Future[Accepted | Refused] = Future()

        def answer(outcome: Accepted | Refused) -> None:
            if not future.done():
                future.set_result(outcome)

        tell(msgspec.structs.replace(command, answer=answer))
        try:
            outcome = future.result(timeout)
        except FutureTimeout:
            raise ToolRefused(
                "unavailable", f"the log did not take it within {timeout:g} s, try again"
            ) from None
        if isinstance(outcome, Refused) and outcome.limit is not None:
            raise LimitReached(outcome.error, limit=outcome.limit, value=outcome.value)
        if isinstance(outcome, Refused):
            raise ToolRefused(outcome.code, outcome.error)
        return outcome

    def ask_session(self, key: str, command: Command) -> Accepted:
        """Tell a session's actor and wait until it is durable."""
        return self.ask(lambda told: self.supervisor.tell_session(key, told), command)

    def calling_row(self, requester: Requester) -> SessionRow | None:
        """Return the session that calls, which is answered later; None for the operator and where there is none.

        The main session of a configured agent is opened where it does not exist, as it is for a target (SEND-2):
        the loop and a sub-agent's result come to it.
        """
        key = requester.key
        if key is None:
            return None
        row = self.sessions.get(str(key))
        if row is not None and row.archived is not None:
            row = None
        if row is None and key.is_main and key.agent_id in self.config.agent_ids:
            self.ask_session(str(key), Patch(values={}, opening=self.opening(key, by="send")))
            row = self.sessions.get(str(key))
        return row

    def outcome(self, run_id: str) -> RunOutcome | None:
        """Return a run as far as it got."""
        return self.runs.get(run_id)

    def delivery(self, row: SessionRow | None, key: SessionKey) -> Route | None:
        """Return where a session's words go outside: its route, else its group (ANN-2)."""
        if row is not None and row.route is not None:
            return row.route
        if row is not None and row.last_channel is not None and row.last_to is not None:
            return Route(channel=row.last_channel, to=row.last_to)
        if key.family in {"group", "channel"} and key.channel is not None and key.peer is not None:
            return Route(channel=key.channel, to=key.peer, thread=key.thread)
        return None

    def delivery_of(
        self, *, key: SessionKey, route: Route, text: str, run_id: str, purpose: Purpose
    ) -> StreamAppend:
        """Return the append that puts a text of a session into the outbox."""
        log_id = self.log.log_id
        delivery_id = ids.derive(log_id, "delivery", run_id, purpose)
        decided = DeliveryDecided(
            delivery_id=delivery_id,
            session_key=str(key),
            route=route,
            text=text,
            key=delivery_id,
            purpose=purpose,
            run_id=run_id,
        )
        stream = ids.delivery_stream(delivery_id)
        return append_of(
            log_id, stream, 0, (decided,), time=self.clock.now_ms(), causation=None, correlation=run_id
        )

    def deliver(self, append: StreamAppend) -> None:
        """Append a delivery of its own and hand it to the outbox.

        Raises:
            ToolRefused: another text was put there under the same key, or the store could not take it.
        """
        try:
            committed = self.log.append_now((append,), timeout=COMMIT_TIMEOUT_S)
        except AppendConflict:
            raise ToolRefused(
                "idempotency_conflict", "idempotencyKey: it was used for another text, use a new key"
            ) from None
        except StoreUnavailable as error:
            raise ToolRefused("unavailable", f"the store is unavailable: {error}") from None
        if not committed.again:
            self.supervisor.tell_flow(
                append.stream, StepTaken(stream=append.stream, recorded=committed.recorded)
            )
