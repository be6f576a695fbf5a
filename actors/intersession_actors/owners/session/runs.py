"""Starts a session's runs: which one is next, and when; has its context read, and calls the agent.

A run begins in the append that lets it begin where that can be, else once its context is read. Everything else here happens outside of the session's actor or returns at once; what comes of it comes back as a command.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from msgspec import json

from intersession_actors.outside.agents.result import AgentResult
from intersession_actors.outside.agents.runners import runner_of
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.outside.channels.channels import Outbound
from intersession_actors.outside.channels.drafts import Draft
from intersession_actors.outside.channels.outcomes import Delivered, DeliveryResult
from intersession_actors.outside.channels.turns import Place
from intersession_actors.owners.chains.cause import Cause, CausedBy
from intersession_actors.owners.session import commands, rules
from intersession_actors.owners.session.answers import has_asker
from intersession_actors.owners.session.commands import (
    AnswerTaken,
    ContextBuilt,
    ContextDue,
    RunReturned,
    ShowAnswer,
)
from intersession_actors.owners.session.context_cache import ContextCache
from intersession_actors.owners.session.effects import attempt_of, parked
from intersession_actors.owners.session.rules import Start, is_task
from intersession_actors.owners.session.state import Running, Session
from intersession_actors.owners.streams.commands import Command
from intersession_actors.owners.streams.effects import Effect
from intersession_actors.owners.streams.owner import Owner
from intersession_actors.owners.streams.shell import STORE_RETRY_MS
from intersession_actors.owners.streams.world import World
from intersession_actors.rules.policy.windows import Reckoned
from intersession_actors.rules.prompt.silence import shown_text
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_events import facts
from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import SessionOpened, Step
from intersession_events.log.recorded import Recorded

TurnMaker = Callable[[str, Running, RunContext, SessionOpened | None], Turn]
"""Makes what an agent gets for an attempt of the session of a key, with the tools bound to that."""


class RunStarter:
    """Starts the runs of one session, one at a time. `tell_self` puts a command into its actor's inbox, from any thread."""

    __slots__ = (
        "_contexts",
        "_key",
        "_make_turn",
        "_reading",
        "_ready",
        "_resumed",
        "_room",
        "_tell_self",
        "_told_parked",
        "_was_read",
        "_world",
        "runner",
    )

    def __init__(
        self,
        world: World,
        contexts: ContextCache,
        make_turn: TurnMaker,
        key: str,
        tell_self: Callable[[Command], None],
    ) -> None:
        self._world = world
        self._contexts = contexts
        self._make_turn = make_turn
        self._key = key
        self.runner = runner_of(key)
        """The executor's name of the session's runner."""
        self._tell_self = tell_self
        self._reading: str | None = None
        """The run whose context is being read."""
        self._ready: tuple[str, RunContext] | None = None
        """The run that is called next, and what it is given."""
        self._was_read = False
        """Whether that was read from the log. Else it may rest on events that came to nothing, and is not used again."""
        self._room: int | None = None
        """For how many tokens there is room in what is ready, or being read."""
        self._resumed: str | None = None
        """The run whose attempt goes on where a fork has cut it, until its agent is called."""
        self._told_parked: str | None = None
        """The run of which it was told that its agent is not here."""

    # --- the next run

    def is_due(self, state: Session) -> bool:
        """Whether the run at the head of the queue can begin: the session is free, its agent is registered, and no context is being read."""
        agents = self._world.agents
        if state.running is not None or not state.queue or not state.exists or self._reading is not None:
            return False
        return not agents.closing and self._has_agent(
            state.queue[0].queued
        )  # else it begins after a restart, as a first attempt

    def parked(self, state: Session) -> Effect | None:
        """Return the one report of the run at the head of the queue, if it waits for a missing agent (KEY-9)."""
        waiting = state.queue[0]
        if not state.exists or self._world.agents.closing or self._has_agent(waiting.queued):
            return None
        if self._told_parked == waiting.queued.run_id:
            return None
        self._told_parked = waiting.queued.run_id
        return parked(self._key, waiting)

    def next_start(
        self,
        owner: Owner[Session, commands.SessionCommand],
        state: Session,
        fresh: Sequence[Recorded] = (),
    ) -> Start | None:
        """Return how the run at the head of the queue begins. None: there is none, or its context must be read first.

        `fresh` are events that are recorded with the start, behind which the session is in that state; then nothing is read.
        Where what was read holds more than the stream up to where it is known, the stream is read again.
        """
        if not self.is_due(state):
            return None
        queued = state.queue[0].queued
        run_id, version, beginning = queued.run_id, owner.version, self._beginning(state, queued)
        context = self.context_at(run_id, version, beginning, fresh)
        if context is not None:
            return Start(beginning, context)
        if fresh:
            return None
        if (was_read := self._ready_for(run_id)) is not None and was_read.version > version:
            owner.load()  # somebody else wrote to the stream
        else:
            self.read(run_id, state.interrupted + 1, version, beginning)
        return None

    def _beginning(self, state: Session, queued: facts.RunQueued) -> rules.Beginning:
        """Return the next attempt's tools and window."""
        compacts = queued.step == "compaction"
        runner = self._summariser() if compacts else self.runner
        said = self._world.agents.window(runner, queued.run_id, state.interrupted + 1)
        if said == "as before":
            said = None if state.window is None else Reckoned(*state.window, state.compacts_at is not None)
        if not isinstance(said, Reckoned):
            asked_for = queued.model or state.settings.get("model")
            said = self._world.rules.reckoned(runner, asked_for, said)
        # Their names are recorded with the run's start (LENS-1).
        tools, model = None, queued.model or state.settings.get("model")
        if state.opened is not None:
            tools = self._world.rules.tools_of(state.opened, state.queue[0].budget.sender, model)
        compaction = self._world.rules.compaction(self.runner) if compacts or said.compaction else None
        if not compacts:
            return rules.beginning_of(state, tools, said, compaction)
        # It has no tools, and leaves alone what the run behind it, which has some, has room for.
        keep = rules.beginning_of(state, tools, said._replace(compaction=True), compaction).keep
        return rules.beginning_of(state, (), said)._replace(keep=keep)

    def _summariser(self) -> str:
        """Return who answers a compaction: the agent that is configured, if it is here, else the session's own (CTX-5)."""
        configured = self._world.rules.compaction(self.runner).agent
        return self.runner if configured is None or not self._world.agents.has(configured) else configured

    def _has_agent(self, queued: facts.RunQueued) -> bool:
        runner = self._summariser() if queued.step == "compaction" else self.runner
        return self._world.agents.has(runner)

    # --- its context

    def context_at(
        self, run_id: str, version: int, beginning: rules.Beginning, fresh: Sequence[Recorded] = ()
    ) -> RunContext | None:
        """Return a run's context as of exactly this version of the stream (PROV-4), if it was read or the transcript is cached.

        It is as it is behind `fresh`, events of the append that starts the run. It is fitted into what there is room for.

        Raises:
            CorruptEvent: no such run waits in the stream, or its message is not there.
        """
        room = beginning.words
        context = self._ready_for(run_id) if self._was_read else None
        if context is not None and context.version == version and self._room == room and not fresh:
            return context
        # What was read may be old: somebody spoke since. The transcript is kept current, so that nobody can outrun it.
        context = self._contexts.at(self._key, run_id, version, room, fresh, keep=beginning.keep)
        if context is not None:
            self._ready, self._room, self._was_read = (run_id, context), room, False
        return context

    def _ready_for(self, run_id: str) -> RunContext | None:
        return self._ready[1] if self._ready is not None and self._ready[0] == run_id else None

    def read(self, run_id: str, attempt: int, version: int, beginning: rules.Beginning | None = None) -> None:
        """Have a run's context read, as of a version of the stream; it returns as `ContextBuilt`."""
        room, keep = (None, 0) if beginning is None else (beginning.words, beginning.keep)
        self._reading, self._room = run_id, room
        tell = self._tell_self
        self._contexts.read(
            self._key,
            run_id,
            lambda context: tell(ContextBuilt(run_id=run_id, attempt=attempt, context=context)),
            version=version,
            room=room,
            keep=keep,
        )

    def resume(self, run_id: str, attempt: int, version: int) -> None:
        """Have the context read of an attempt that continues after a fork's cut; `resumed` tells when it does."""
        self._resumed = run_id
        self.read(run_id, attempt, version)

    def resumed(self, state: Session, *, resumes: bool) -> bool | None:
        """Return whether an attempt continues after a fork's cut, once its earlier actions are read; None until then.

        `resumes`: its agent knows how to go on behind what is recorded of it.
        """
        run_id, running = self._resumed, state.running
        if run_id is None or running is None or run_id != running.waiting.queued.run_id:
            return None
        context = self._ready_for(run_id)
        if context is None:
            return None
        self._resumed = None
        if context.partial and not resumes:
            self._ready = None
            return False
        return True

    def built(self, message: ContextBuilt) -> None:
        """Take a context that was read. If the store could not give it, it is read again after a while.

        Raises:
            Exception: whatever kept it from being read: the stream is damaged, or there was no memory.
        """
        if self._reading != message.run_id:
            return
        if isinstance(message.context, StoreUnavailable):
            self._world.reports.store_away(message.context, session_key=self._key, run_id=message.run_id)
            due = ContextDue(run_id=message.run_id)
            self._world.time.timers.after(
                STORE_RETRY_MS, ("context", self._key), lambda: self._tell_self(due)
            )
            return
        self._reading = None
        if isinstance(message.context, Exception):
            raise message.context
        self._ready, self._was_read = (message.run_id, message.context), True

    def read_again(self, due: ContextDue) -> None:
        """Forget that a context is being read, so that it is asked for again."""
        if self._reading == due.run_id:
            self._reading = None

    def call(self, running: Running, opened: SessionOpened | None) -> None:
        """Call the agent with its context: the start is durable. Its result returns as `RunReturned`."""
        queued, attempt = running.waiting.queued, running.attempt
        context = self._ready_for(queued.run_id)
        if context is None:
            return
        self._ready = None
        world, key = self._world, self._key
        before, after = _OF_A_TASK if is_task(queued) else _POINTS[queued.step]
        crash_point(before)
        turn = self._make_turn(key, running, context, opened)
        if queued.step == "compaction" and (runner := self._summariser()) != self.runner:
            turn = replace(turn, agent_id=runner, runner=runner)

        def returned(result: AgentResult) -> None:
            world.chains.under_way.end(cause)
            world.mail.tell_session(
                key,
                RunReturned(
                    run_id=queued.run_id,
                    attempt=attempt,
                    result=result,
                    causation=running.cause,
                    correlation=running.waiting.correlation,
                ),
            )

        # A late answer comes back the same way: it is put on record, and nobody uses it.
        caused = CausedBy(
            session_key=key,
            budget=running.waiting.budget,
            event=running.cause,
            of=queued.run_id,
            attempt=attempt,
        )
        cause = Cause(caused, world.time.clock)
        world.chains.under_way.begin(cause)
        if has_asker(running) and queued.route is not None and world.channels.edits(queued.route.channel):
            turn = self._showing(turn)
        world.agents.start(turn, returned, returned, inside=cause.inside)
        crash_point(after)

    def _showing(self, turn: Turn) -> Turn:
        """Return a turn whose first words are told to the session, so that its channel shows them (STREAM-5)."""
        pieces, say, key = self._world.agents.pieces, turn.stream, self._key
        told = list[ShowAnswer]()

        def said(piece: str) -> None:
            say(piece)
            if not told and (shown := pieces.of(turn.run_id)) is not None and shown_text(shown.text):
                told.append(ShowAnswer(run_id=turn.run_id, attempt=turn.attempt))
                self._world.mail.tell_session(key, told[0])

        return replace(turn, _pieces=said)

    def show(self, running: Running) -> None:
        """Have the channel of the person show what the attempt says; what came of the first words returns as `AnswerTaken`."""
        world, key, queued, attempt = self._world, self._key, running.waiting.queued, running.attempt
        route, shown = queued.route, running.waiting.shown
        channel = None if route is None else world.channels.edits(route.channel)
        if route is None or channel is None:
            return

        def text() -> str | None:
            said = world.agents.pieces.of(queued.run_id)
            return shown_text(said.text) if said is not None and said.attempt == attempt else None

        def begun(result: DeliveryResult) -> None:
            taken = AnswerTaken(
                run_id=queued.run_id,
                attempt=attempt,
                receipt=result.receipt if isinstance(result, Delivered) else None,
                error=None if isinstance(result, Delivered) or result.in_doubt else result.error,
            )
            if taken.receipt is not None or taken.error is not None:
                world.mail.tell_session(key, taken)

        outbound = Outbound(
            channel=route.channel,
            to=route.to,
            thread=route.thread,
            account=route.account,
            text="",
            key=f"{queued.run_id}+{attempt}",
            receipt=None if shown is None or shown.receipt is None else json.decode(shown.receipt),
            unfinished=True,
        )
        caused = CausedBy(session_key=key, budget=running.waiting.budget, event=running.cause)
        draft = Draft(
            channel,
            outbound,
            text=text,
            begun=begun,
            may_begin=lambda: world.channels.turns.is_idle(Place.of(route)),
            inside=world.inside(caused),
        )
        world.channels.drafts.open(queued.run_id, draft)

    def age_ms(self, running: Running) -> int:
        """Return how long ago the attempt began."""
        return self._world.time.stopwatch.elapsed_ms(
            *attempt_of(running), since_ms=self._world.fork.begun(running.began_ms)
        )


_POINTS: dict[Step, tuple[str, str]] = {
    "message": ("S4", "S5"),
    "reply": ("K2", "K2"),
    "announce": ("A1", "A1"),
    "compaction": ("S4", "S5"),
}
"""Crash points before and after the call of an agent, by step (docs/reliability.md)."""

_OF_A_TASK: tuple[str, str] = ("P5", "P5")

RETURNED: dict[Step, str] = {"message": "S6", "reply": "K3", "announce": "A2", "compaction": "S6"}
"""Crash points where an agent has answered and the answer is not yet stored."""
