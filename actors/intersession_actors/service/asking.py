"""How a door has a command carried out: the id of the run it asks for, and the wait until its command is durable."""

import hashlib
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Final

import msgspec

from intersession_actors.errors import LimitReached, ToolRefused
from intersession_actors.service.callers import Call
from intersession_actors.service.pending import Pending, Result
from intersession_actors.service.service import Service
from intersession_actors.streams import Accepted, Asked, BeginsFlow, Refused
from intersession_events import ids

COMMIT_TIMEOUT_S: Final = 30.0
"""How long a door waits for the log to take a command."""


def run_id_of(service: Service, call: Call, *, method: str, idempotency_key: str | None) -> str:
    """Return the id of a run that is asked for: derived where that can be, else random (design, rule 4)."""
    caller, log_id = call.caller, service.log.log_id
    if idempotency_key is not None:
        return ids.derive(log_id, "run", caller.name, method, idempotency_key)
    if caller.run is not None:
        return ids.derive(log_id, "run", caller.run.run_id, caller.run.attempt, call.ordinal)
    return service.new_id()


def digest_of(asked: object) -> str:
    """Return the digest that tells whether two calls under one idempotency key asked for the same."""
    return hashlib.sha256(msgspec.json.encode(asked, order="sorted")).hexdigest()


def key_conflict(what: str) -> ToolRefused:
    """Return the refusal of an idempotency key that was used for another message, task or text."""
    return ToolRefused(
        "idempotency_conflict", f"idempotencyKey: it was used for another {what}, use a new key"
    )


def ask_session(service: Service, key: str, command: Asked) -> Accepted:
    """Tell a session's actor and wait until it is durable.

    Raises:
        ToolRefused: it was refused, or the log did not take it in time (`unavailable`).
    """
    answered = FirstAnswer()
    service.supervisor.tell_session(key, msgspec.structs.replace(command, answer=answered))
    return _durable(answered)


def ask_flow(service: Service, command: BeginsFlow) -> Accepted:
    """Tell the manager of the flow that a command begins, and wait until it is durable.

    Raises:
        ToolRefused: it was refused, or the log did not take it in time (`unavailable`).
    """
    answered = FirstAnswer()
    service.supervisor.tell_flow(command.stream, msgspec.structs.replace(command, answer=answered))
    return _durable(answered)


def _durable(answered: "FirstAnswer") -> Accepted:
    return answered.wait(COMMIT_TIMEOUT_S, f"the log did not take it within {COMMIT_TIMEOUT_S:g} s")


class FirstAnswer:
    """Takes the first answer to a command, from an actor's thread; nobody asks for another."""

    def __init__(self) -> None:
        self._future: Future[Accepted | Refused] = Future()

    def __call__(self, outcome: Accepted | Refused) -> None:
        """Take an answer."""
        if not self._future.done():
            self._future.set_result(outcome)

    def wait(self, seconds: float, late: str) -> Accepted:
        """Return the answer once it is there; `late` is what an error says of one that does not come in time.

        Raises:
            ToolRefused: the command was refused, or there is no answer in time (`unavailable`).
        """
        wait([self._future], seconds)
        return self._outcome(late)

    def pending(self, seconds: float, late: str, answer: Callable[[], Result]) -> Pending:
        """Return an answer that is given once the command was accepted; a refusal, and no answer in time, are answers too."""

        def finish() -> Result:
            try:
                self._outcome(late)
            except ToolRefused as refused:
                return dict(refused.as_result())
            return answer()

        return Pending(future=self._future, timeout=seconds, finish=finish, over=_nothing)

    def _outcome(self, late: str) -> Accepted:
        if not self._future.done():
            raise ToolRefused("unavailable", f"{late}, try again")
        outcome = self._future.result()
        if isinstance(outcome, Accepted):
            return outcome
        if outcome.limit is not None:
            raise LimitReached(outcome.error, limit=outcome.limit, value=outcome.value)
        raise ToolRefused(outcome.code, outcome.error)


def _nothing() -> None:
    """Nobody has to be told that the wait is over."""
