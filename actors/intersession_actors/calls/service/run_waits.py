"""Runs as every door has them: waiting for the end of one, what became of its reply, and stopping one. Answers are dicts."""

from typing import Final, NamedTuple

import msgspec

from intersession_actors.calls.service.asking import ask_flow, ask_session, flow_begun_by
from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.service.pending import Pending, Result
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.agents.runners import runner_of
from intersession_actors.owners.exchange.commands import ReleaseExchange, StopAsking
from intersession_actors.owners.session.answers import ended_again
from intersession_actors.owners.session.commands import Abort
from intersession_actors.owners.streams.commands import RunEnded
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import IDENTITY
from intersession_actors.rules.gate.texts import checked
from intersession_events.basics import ids
from intersession_events.facts import ExchangeHeld, ExchangeReleased
from intersession_events.log.recorded import parts_in
from intersession_projections.views.run_outcomes.outcome import RunOutcome


class RunDoor:
    """Waits for runs, and stops them."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def begin(self, run_id: str, seconds: float) -> Result | Pending:
        """Begin to wait like `agent.wait` (GATE-3): the outcome if the run ends in time, else `timeout`.

        Raises:
            ToolRefused: there is no such run (`unknown_run`).
        """
        waits = self._service.waits
        known = self.known(run_id)
        awaited = self._answering(known).run_id
        future = waits.expect(awaited)
        pending = Pending(
            future=future,
            timeout=seconds,
            finish=lambda: self._answer(known, self._answering(known)),
            over=lambda: waits.forget(awaited, future),
        )
        try:
            # Only now: a run that ends after this look completes the future.
            outcome = self._answering(known)
        except BaseException:
            pending.over()
            raise
        if not outcome.ended and seconds > 0 and outcome.run_id == awaited:
            return pending
        pending.over()
        if not outcome.ended and seconds > 0:
            return self.begin(run_id, seconds)  # it was collected between the two looks
        return self._answer(known, outcome)

    def abort(self, run_id: str, *, by: str) -> bool:
        """Stop a queued or running run, or what its exchange holds or may hold; True if there was something to stop.

        Raises:
            ToolRefused: there is no such run (`unknown_run`), or `by` is no name.
        """
        checked("by", by)
        outcome = self._outcome(self.known(checked("runId", run_id, most=IDENTITY.most)))
        if outcome.ended:
            return self._end_held(outcome, by)
        accepted = ask_session(self._service, outcome.session_key, Abort(run_id=outcome.run_id, by=by))
        if accepted.recorded:
            return True
        outcome = self._outcome(outcome.run_id)
        return outcome.ended and self._end_held(outcome, by)  # it has ended meanwhile

    def _end_held(self, outcome: RunOutcome, by: str) -> bool:
        """End the exchange of an ended run, if it is held: that stops what would follow."""
        exchange = self._service.flows.exchange(outcome.exchange_id or "")
        if exchange is None or not exchange.is_open:
            return False
        hold_id = exchange.hold_id if exchange.held is not None else self._held_at_once(exchange.stream, by)
        if hold_id is None:
            return False
        command = ReleaseExchange(stream=exchange.stream, action="end", by=by, hold_id=hold_id)
        try:
            return bool(ask_flow(self._service, command).recorded)
        except ToolRefused as refused:
            if refused.code != "invalid_request":
                raise
            return False  # it was released meanwhile, and has gone on

    def _held_at_once(self, stream: str, by: str) -> str | None:
        """Hold a text about which the host's rule is asked, or is to be; None where it is asked about none."""
        service = self._service
        if service.world.standing.holds.rule is None:
            return None
        exchange = service.flows.exchange(stream.partition(":")[2])
        ended = run_ended(service, stream, None if exchange is None else exchange.awaits)
        recorded = ask_flow(service, StopAsking(stream=stream, by=by, ended=ended)).recorded
        return next(
            (one.event.hold_id for one in parts_in(recorded) if isinstance(one.event, ExchangeHeld)), None
        )

    def _answering(self, run_id: str) -> RunOutcome:
        """Return the run that answers a run's message: itself, or the one that it was collected into (QUEUE-2)."""
        outcome = self._outcome(run_id)
        return outcome if outcome.into is None else self._answering(outcome.into)

    def _answer(self, run_id: str, outcome: RunOutcome) -> Result:
        """Return the end of a run, and whether its exchange holds what follows from it (LIVE-1)."""
        answer = wait_result(outcome, goes_on(self._service, outcome))
        if outcome.run_id != run_id:
            answer |= {"runId": run_id, "collectedInto": outcome.run_id}
        if not outcome.ended or outcome.exchange_id is None:
            return answer
        exchange = self._service.flows.exchange(outcome.exchange_id)
        if exchange is not None and exchange.held is not None:
            answer["held"] = exchange.held
        return answer

    def known(self, run_id: str) -> str:
        """Return the run that an id means; a caller's own idempotency key is one too (GATE-1).

        Raises:
            ToolRefused: there is no such run (`unknown_run`).
        """
        if self._service.runs.get(run_id) is not None:
            return run_id
        by_key = self._service.runs.by_any_key(run_id)
        if by_key is None:
            raise unknown_run(run_id)
        return by_key

    def _outcome(self, run_id: str) -> RunOutcome:
        outcome = self._service.runs.get(run_id)
        if outcome is None:
            raise unknown_run(run_id)
        return outcome


def run_ended(service: Service, stream: str, run_id: str | None) -> RunEnded | None:
    """Return the message to a flow about the end of its run; None while it is running."""
    outcome = service.runs.get(run_id) if run_id is not None else None
    if outcome is None or not outcome.ended:
        return None
    session = ids.session_stream(outcome.session_key)
    events = service.log.stream(session, after=outcome.first_version - 1, to=outcome.last_version)
    ended = ended_again(stream, events)
    thread = service.threads.of(outcome.session_key)
    return ended if ended is None or thread is None else msgspec.structs.replace(ended, thread=thread)


def unknown_run(run_id: str) -> ToolRefused:
    """Return the refusal of a run that is missing or beyond reach."""
    return ToolRefused("unknown_run", f"runId: there is no run {run_id[:128]!r}, use one that was answered")


def goes_on(service: Service, outcome: RunOutcome | None) -> str:
    """Say what becomes of a run after its caller's timeout: it goes on, or waits until its agent is registered (KEY-9)."""
    if outcome is not None and outcome.status == "queued" and service.writer is None:
        agent = runner_of(outcome.session_key)
        if not service.world.agents.has(agent):
            return f"the run waits until somebody registers its agent {agent!r}"
    return "the run goes on"


def wait_result(outcome: RunOutcome, further: str) -> Result:
    """Return the answer of `agent.wait`: a pure function of the log (GATE-3, reliability 3.1 rule 6) and the registered agents."""
    answer: Result = {"runId": outcome.run_id}
    if not outcome.ended:
        answer |= {"status": "timeout", "error": f"no reply yet; {further}", "runState": outcome.status}
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


class FirstReply(NamedTuple):
    """The state of the reply. `waits`: it is held. `text` replaces it after an edit.

    `ended_by` is who ended the exchange while it was held: nobody is given it.
    """

    waits: bool = False
    is_held: bool = False
    is_dropped: bool = False
    text: str | None = None
    ended_by: str | None = None


GOES_ON: Final = FirstReply()
"""It is given as it was said."""


def has_answer(service: Service, caller: Caller, run_id: str) -> bool:
    """Whether a caller's awaited answer is there."""
    return service.runs.has_ended(run_id) and not first_reply(service, caller, run_id).waits


def first_reply(service: Service, caller: Caller, run_id: str) -> FirstReply:
    """Return the state of a reply. The operator, who may release it, has it at once."""
    if caller.key is None:
        return GOES_ON
    stream = ids.exchange_stream(flow_begun_by(service, "exchange", run_id))
    exchange = service.flows.exchange(stream.partition(":")[2])
    if exchange is None:
        return GOES_ON
    if exchange.holds_first:
        return FirstReply(waits=True, is_held=True)
    if exchange.primary_status is None:
        # Nothing was decided on it yet. Nobody decides on what was set aside, which held nothing when it was.
        return FirstReply(waits=not {stream, "exchange"} & service.supervisor.degraded.keys())
    match exchange.first:
        case "drop":
            return FirstReply(is_dropped=True)
        case "end":
            released = _released(service, stream)
            return FirstReply(ended_by="somebody" if released is None else released.by)
        case "edit":
            released = _released(service, stream)
            return FirstReply(text=None if released is None else released.text)
        case "go_on" | None:
            return GOES_ON


def _released(service: Service, stream: str) -> ExchangeReleased | None:
    events = (item.event for item in service.log.stream(stream))
    return next((event for event in events if isinstance(event, ExchangeReleased)), None)
