"""What the operator is told of a session: runs that failed, were cut off, answered too late, or wait for an agent that is not here."""

from contextlib import nullcontext

from intersession_actors.agents import runner_of
from intersession_actors.chains import Cause
from intersession_actors.host import Inside
from intersession_actors.prompt import is_withheld
from intersession_actors.session.commands import RunReturned
from intersession_actors.session.state import Session, Waiting
from intersession_actors.streams import World
from intersession_events import facts
from intersession_events.log import Recorded


def _is_for_a_person(before: Session) -> bool:
    """Whether the run under way would have answered a person on a channel."""
    running = before.running
    return running is not None and running.waiting.queued.route is not None


class Telling:
    """Tells the operator of one session."""

    def __init__(self, world: World, key: str) -> None:
        self._world = world
        self._key = key
        self._told_parked: str | None = None

    def recorded(self, before: Session, recorded: Recorded) -> None:
        """Tell what a durable event says has gone wrong. `before` is the session as it was."""
        reports, event = self._world.reports, recorded.event
        match event:
            case facts.RunFailed():
                reports.tell(
                    "run_failed",
                    session_key=self._key,
                    run_id=event.run_id,
                    attempt=event.attempt,
                    code=event.code,
                    error=event.error,
                    traceback=event.traceback,
                    inside=self._inside(before, event.run_id, recorded.id),
                )
            case facts.RunCompleted() if _is_for_a_person(before) and is_withheld(event.reply):
                reports.tell(
                    "reply_withheld",
                    session_key=self._key,
                    run_id=event.run_id,
                    attempt=event.attempt,
                    inside=self._inside(before, event.run_id, recorded.id),
                )
            case facts.RunInterrupted(run_id=run_id) if run_id in self._world.fork.cut_runs:
                pass  # the fork was cut in the middle of it: nothing went wrong
            case facts.RunInterrupted() | facts.LateReplyDropped():
                reports.tell(
                    "run_interrupted" if isinstance(event, facts.RunInterrupted) else "late_reply",
                    session_key=self._key,
                    run_id=event.run_id,
                    attempt=event.attempt,
                    inside=self._inside(before, event.run_id, recorded.id),
                )
            case _:
                pass

    def parked(self, waiting: Waiting) -> None:
        """Tell, once, that a run waits for its agent (KEY-9)."""
        run_id = waiting.queued.run_id
        if self._told_parked != run_id:
            self._told_parked = run_id
            agent = runner_of(self._key)
            self._world.reports.tell(
                "run_parked",
                session_key=self._key,
                run_id=run_id,
                error=f"agent {agent!r}: register it, or start the process that has it",
                inside=self._caused_by(waiting, waiting.cause),
            )

    def answer_lost(self, before: Session, command: RunReturned, limit_ms: int) -> None:
        """Tell that an agent's answer was given up, because the store was away."""
        self._world.reports.tell(
            "answer_lost",
            session_key=self._key,
            run_id=command.run_id,
            attempt=command.attempt,
            error=f"the store was not available for {limit_ms // 1000} s",
            inside=self._inside(before, command.run_id, None),
        )

    def _inside(self, before: Session, run_id: str, cause: str | None) -> Inside:
        """Return what the host's callback is called for: what it does goes on with the chain of the run (LOOP-5)."""
        running = before.running
        known = (*((running.waiting,) if running is not None else ()), *before.queue)
        waiting = next((one for one in known if one.queued.run_id == run_id), None)
        return nullcontext if waiting is None else self._caused_by(waiting, cause or waiting.cause)

    def _caused_by(self, waiting: Waiting, cause: str | None) -> Inside:
        return Cause(
            session_key=self._key, budget=waiting.budget, event=cause, clock=self._world.time.clock
        ).inside
