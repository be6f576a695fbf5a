"""A decision of an exchange as it was made, to be made again: what was asked, what was known, and which events it led to."""

from collections.abc import Sequence
from typing import NamedTuple

from intersession_actors import exchange
from intersession_actors.delivery import ended_in
from intersession_actors.session import ended_again
from intersession_actors.streams import (
    DeliveryEnded,
    Record,
    Resume,
    RunEnded,
    appends_in,
    record_in,
    texts_in,
    words_of,
)
from intersession_events import facts, ids
from intersession_events.log import Log, Recorded
from intersession_projections.run_outcomes import Runs


class Decision(NamedTuple):
    """What the rules of an exchange were asked, as its record says, and the events that they led to (`came`, in one append).

    `told_at` is the position of the event that says how the run or the delivery ended.
    """

    state: exchange.Exchange
    outcome: exchange.Command
    now: exchange.Circumstances
    came: tuple[Recorded, ...]
    told_at: int | None

    def decided(self) -> list[facts.ExchangeEvent]:
        """Ask the rules of today."""
        return exchange.decide(self.state, self.outcome, self.now)

    @property
    def holds(self) -> bool | None:
        """Whether the rules of today say what was recorded; None where words were erased that they would look at."""
        if are_erased(self.came, self.outcome):
            return None
        return self.decided() == [recorded.event for recorded in self.came]


def are_erased(came: Sequence[Recorded], outcome: object) -> bool:
    """Whether words were erased of what came in, or of the events that it led to: then nobody can decide it again."""
    said = outcome.text if isinstance(outcome, RunEnded) else None
    return said == facts.ERASED or facts.ERASED in texts_in(came)


def decision_of(log: Log, recorded: Recorded) -> Decision | None:
    """Return the decision that an event of an exchange is of; None where the log does not have what it was made on."""
    before, came = parted(log.stream(recorded.stream), recorded)
    state, first = exchange.exchange_in(before), came[0]
    if state is None or not first.decision:
        return None
    record, words = record_in(first.decision), words_of(came)
    outcome = exchange.command_in(record, first.stream, words) or outcome_of(
        log, record, state.pending, first
    )
    if outcome is None:
        return None
    log_id = log.lineage.log_id_at(first.position)
    now = exchange.circumstances_in(record, state, log_id=log_id, stream=first.stream, words=words)
    return Decision(state, outcome, now, came, _told_at(log, outcome, first))


def _told_at(log: Log, outcome: exchange.Command, first: Recorded) -> int | None:
    if isinstance(outcome, RunEnded):
        run = Runs(log).get(outcome.run_id)
        return None if run is None else run.position
    if not isinstance(outcome, DeliveryEnded):
        return first.position
    sent = log.stream(ids.delivery_stream(outcome.delivery_id))
    return next(
        (recorded.position for recorded in reversed(sent) if recorded.position < first.position), None
    )


def parted(events: Sequence[Recorded], wanted: Recorded) -> tuple[list[Recorded], tuple[Recorded, ...]]:
    """Part a stream into what was there, and the append that an event is of."""
    before: list[Recorded] = []
    for append in appends_in(events):
        if append[-1].version >= wanted.version:
            return before, append
        before += append
    return before, (wanted,)


def outcome_of(
    log: Log, record: Record, pending: str, first: Recorded
) -> RunEnded | DeliveryEnded | Resume | None:
    """Return what a flow was told that waited for a run or a delivery, as events say; None where they are not here."""
    match record.asked:
        case "RunEnded":
            return _run_ended(log, first.stream, pending)
        case "DeliveryEnded":
            return _delivery_ended(log, pending, first.position)
        case "Resume":
            return Resume(stream=first.stream)
        case _:
            return None


def _delivery_ended(log: Log, delivery_id: str, position: int) -> DeliveryEnded | None:
    sent = log.stream(ids.delivery_stream(delivery_id)) if delivery_id else ()
    return ended_in(recorded for recorded in sent if recorded.position < position)


def _run_ended(log: Log, stream: str, run_id: str) -> RunEnded | None:
    outcome = Runs(log).get(run_id)
    if outcome is None or not outcome.ended:
        return None
    session = ids.session_stream(outcome.session_key)
    return ended_again(stream, log.stream(session, after=outcome.first_version - 1, to=outcome.last_version))
