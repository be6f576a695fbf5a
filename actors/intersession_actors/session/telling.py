"""What the operator is told of a session: runs that failed, were cut off, answered too late, or wait for an agent that is not here."""

from intersession_actors.session.commands import RunReturned
from intersession_actors.streams import World
from intersession_events import facts


class Telling:
    """Tells the operator of one session."""

    def __init__(self, world: World, key: str) -> None:
        self._world = world
        self._key = key
        self._told_parked: str | None = None

    def recorded(self, event: facts.Event) -> None:
        """Tell what a durable event says has gone wrong."""
        reports = self._world.reports
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
                )
            case facts.RunInterrupted() | facts.LateReplyDropped():
                reports.tell(
                    "run_interrupted" if isinstance(event, facts.RunInterrupted) else "late_reply",
                    session_key=self._key,
                    run_id=event.run_id,
                    attempt=event.attempt,
                )
            case _:
                pass

    def parked(self, run_id: str) -> None:
        """Tell, once, that a run waits for its agent (KEY-9)."""
        if self._told_parked != run_id:
            self._told_parked = run_id
            agent = self._world.agent_of(self._key)
            self._world.reports.tell(
                "run_parked",
                session_key=self._key,
                run_id=run_id,
                error=f"agent {agent!r}: register it, or start the process that has it",
            )

    def answer_lost(self, command: RunReturned, limit_ms: int) -> None:
        """Tell that an agent's answer was given up, because the store was away."""
        self._world.reports.tell(
            "answer_lost",
            session_key=self._key,
            run_id=command.run_id,
            attempt=command.attempt,
            error=f"the store was not available for {limit_ms // 1000} s",
        )
