"""What several doors do alike: a person's message, waiting for a run, stopping one. Answers are dicts, as a model sees them."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from intersession_actors.errors import ToolRefused
from intersession_actors.service.service import Service
from intersession_actors.session import Abort
from intersession_events.errors import StoreUnavailable
from intersession_projections.run_outcomes import RunOutcome

P = ParamSpec("P")
T = TypeVar("T")


class DoorThreads(ThreadPoolExecutor):
    """The threads that block for coroutines. Once they have ended, so has the system: callers are told so."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Run a function on a thread.

        Raises:
            StoreUnavailable: the system is closed.
        """
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError as error:
            raise StoreUnavailable("the system is closed") from error


class RunDoor:
    """Waiting for runs, and stopping them."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def wait(self, run_id: str, seconds: float) -> dict[str, Any]:
        """Answer as `agent.wait` does (GATE-3): the outcome if the run ends in time, else `timeout`.

        Raises:
            ToolRefused: there is no such run (`unknown_run`).
        """
        service = self._service
        known = self._known(run_id)
        future = service.waits.expect(known)
        try:
            outcome = self._outcome(known)
            if not outcome.ended and seconds > 0:
                with contextlib.suppress(TimeoutError):
                    future.result(seconds)
                outcome = self._outcome(known)
        finally:
            service.waits.forget(known, future)
        return wait_result(outcome)

    async def await_run(self, run_id: str, seconds: float, doors: Executor) -> dict[str, Any]:
        """Answer as `wait` does, without blocking the event loop."""
        service, loop = self._service, asyncio.get_running_loop()
        known = await loop.run_in_executor(doors, self._known, run_id)
        future = service.waits.expect(known)
        try:
            outcome = await loop.run_in_executor(doors, self._outcome, known)
            if not outcome.ended and seconds > 0:
                await asyncio.wait([asyncio.wrap_future(future)], timeout=seconds)
                outcome = await loop.run_in_executor(doors, self._outcome, known)
        finally:
            service.waits.forget(known, future)
        return wait_result(outcome)

    def abort(self, run_id: str, *, by: str) -> bool:
        """Stop a run, queued or under way; True if there was something to stop.

        Raises:
            ToolRefused: there is no such run (`unknown_run`).
        """
        outcome = self._outcome(self._known(run_id))
        if outcome.ended:
            return False
        accepted = self._service.ask_session(outcome.session_key, Abort(run_id=outcome.run_id, by=by))
        return bool(accepted.recorded)

    def _known(self, run_id: str) -> str:
        """Return the run that an id means; a caller's own idempotency key is one too (GATE-1)."""
        if self._service.runs.get(run_id) is not None:
            return run_id
        by_key = self._service.runs.by_any_key(run_id)
        if by_key is None:
            raise ToolRefused(
                "unknown_run", f"runId: there is no run {run_id[:128]!r}, use one that was answered"
            )
        return by_key

    def _outcome(self, run_id: str) -> RunOutcome:
        outcome = self._service.runs.get(run_id)
        if outcome is None:
            raise ToolRefused(
                "unknown_run", f"runId: there is no run {run_id[:128]!r}, use one that was answered"
            )
        return outcome


def wait_result(outcome: RunOutcome) -> dict[str, Any]:
    """Return what `agent.wait` answers: a pure function of the log (GATE-3, reliability 3.1 rule 6)."""
    answer: dict[str, Any] = {"runId": outcome.run_id}
    if not outcome.ended:
        answer |= {
            "status": "timeout",
            "error": "no reply yet; the run goes on",
            "runState": outcome.status,
        }
    else:
        answer["status"] = outcome.status
        if outcome.error is not None:
            answer["error"] = outcome.error
        if outcome.reply is not None:
            answer["reply"] = outcome.reply
    if outcome.started_ms is not None:
        answer["startedAt"] = outcome.started_ms
    if outcome.ended_ms is not None:
        answer["endedAt"] = outcome.ended_ms
    return answer
