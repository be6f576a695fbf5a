"""A decision of a session, an exchange or a spawn as it was made, to be made again: what was asked, what was known, and which events it led to."""

from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from intersession_actors.hindsight.explaining.around import Around
from intersession_actors.owners.delivery.rules import ended_in
from intersession_actors.owners.flows.led import Led
from intersession_actors.owners.flows.rules import RecordRead, Rules
from intersession_actors.owners.session import commands, folding, records
from intersession_actors.owners.session import rules as session_rules
from intersession_actors.owners.session import state as session_state
from intersession_actors.owners.session.answers import ended_again
from intersession_actors.owners.session.state import Session
from intersession_actors.owners.streams.commands import DeliveryEnded, Refused, Resume, RunEnded
from intersession_actors.owners.streams.records import Record, appends_in, record_in, texts_in, words_of
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.spans import Span, backwards
from intersession_projections.copies.forks.frozen_work import frozen_in

L = TypeVar("L", bound=Led)
S = TypeVar("S")
C = TypeVar("C")
N = TypeVar("N")
E = TypeVar("E", bound=msgspec.Struct)


class Decision(NamedTuple, Generic[S, C, N]):
    """What rules were asked, as a record says, and the events that they led to (`came`, in one append).

    `told_at` is the position of the event that says how the run or the delivery ended.
    """

    rules: Callable[[S, C, N], Sequence[facts.Event] | Refused]
    state: S
    outcome: C
    now: N
    came: tuple[Recorded, ...]
    told_at: int | None

    def decided(self) -> Sequence[facts.Event]:
        """Ask the rules of today; what they refuse leads to nothing."""
        events = self.rules(self.state, self.outcome, self.now)
        return () if isinstance(events, Refused) else events

    @property
    def holds(self) -> bool | None:
        """Whether the rules of today say what was recorded; None where words were erased that they would look at."""
        if are_erased(self.came, self.outcome):
            return None
        return list(facts.joined(self.decided())) == [
            facts.with_parts(_without_text(recorded.event), _without_text) for recorded in self.came
        ]


def _without_text(event: E) -> E:
    """Return an announce without its text, which is made of what it names."""
    is_announce = isinstance(event, facts.AnnounceDecided)
    return msgspec.structs.replace(event, text=None) if is_announce else event


def are_erased(came: Sequence[Recorded], outcome: object) -> bool:
    """Whether the input or its events were erased; the decision can't be repeated then."""
    said = outcome.text if isinstance(outcome, RunEnded) else None
    return said == facts.ERASED or facts.ERASED in texts_in(one.event for one in came)


def decision_of(around: Around, recorded: Recorded, rules: Rules[L, C, N]) -> Decision[L, C, N] | None:
    """Return the decision that an event of a flow is of; None where the log does not have what it was made on."""
    before, came = parted(around.stream(recorded.stream), recorded)
    state, first = rules.state_in(before), came[0]
    if state is None or not first.decision:
        return None
    log_id = around.log.lineage.log_id_at(first.position)
    read = RecordRead(record_in(first.decision), first.stream, log_id, words_of(one.event for one in came))
    outcome = rules.command_in(read) or _outcome_of(around, read.record, state.pending, first)
    if not rules.takes(outcome):
        return None
    now = rules.circumstances_in(read, state)
    return Decision(rules.decide, state, outcome, now, came, _told_at(around, outcome, first))


SessionDecision = Decision[Session, commands.Decidable, session_rules.Circumstances]

_BY_A_FLOW: Final = frozenset({"Enqueue"})
"""What a session is told by others, whose streams have the rest of it."""
_REST: Final = 64
"""How many more events than the one that is explained an append may have, as far as anybody looks."""


def decision_in_session(log: Log, recorded: Recorded) -> SessionDecision | None:
    """Return the decision that an event of a session is of; None where it has no record, or others told it what is not in its stream."""
    came = _append_of(log, recorded)
    first = came[0]
    record = record_in(first.decision) if first.decision else None
    if record is None or record.asked in _BY_A_FLOW:
        return None
    log_id = log.lineage.log_id_at(first.position)
    now = folding.session_at(log, first.stream, first.version - 1)
    state = session_state.without(now.session, frozen_in(log, first.position).runs)
    command = records.command_in(record, came, None, state, log_id)
    if command is None:
        return None
    known = records.circumstances_in(
        record,
        came,
        state,
        now.transcript,
        log_id=log_id,
        words=lambda _: "",  # what a person is told stands in another stream
        tools_of=_no_tools,
    )
    return Decision(_decided_in_session, state, command, known, came, first.position)


def _no_tools(_opened: facts.SessionOpened | None, _begun: facts.RunStarted, _sender: str | None) -> None:
    """Return that the tools of a run that starts are not known: nothing that ends is decided by them."""


def _decided_in_session(
    state: Session, command: commands.Decidable, now: session_rules.Circumstances
) -> Sequence[facts.Event] | Refused:
    plan = session_rules.decide(state, command, now)
    return plan if isinstance(plan, Refused) else plan.events


def _append_of(log: Log, recorded: Recorded) -> tuple[Recorded, ...]:
    """Return the append that an event is of."""
    found: list[Recorded] = []
    for one in backwards(log, Span(to=recorded.position), recorded.stream, to_version=recorded.version):
        found.append(one)
        if one.decision:
            break
    rest = log.stream(recorded.stream, after=recorded.version, limit=_REST)
    return next(iter(appends_in([*reversed(found), *rest])))


def _told_at(around: Around, outcome: object, first: Recorded) -> int | None:
    if isinstance(outcome, RunEnded):
        run = around.run(outcome.run_id)
        return None if run is None else run.position
    if not isinstance(outcome, DeliveryEnded):
        return first.position
    sent = around.stream(ids.delivery_stream(outcome.delivery_id))
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


def _outcome_of(
    around: Around, record: Record, pending: str, first: Recorded
) -> RunEnded | DeliveryEnded | Resume | None:
    """Return what a flow was told that waited for a run or a delivery, as events say; None where they are not here."""
    match record.asked:
        case "RunEnded":
            return _run_ended(around, first.stream, pending)
        case "DeliveryEnded":
            return _delivery_ended(around, pending, first.position)
        case "Resume":
            return Resume(stream=first.stream)
        case _:
            return None


def _delivery_ended(around: Around, delivery_id: str, position: int) -> DeliveryEnded | None:
    sent = around.stream(ids.delivery_stream(delivery_id)) if delivery_id else ()
    return ended_in(recorded for recorded in sent if recorded.position < position)


def _run_ended(around: Around, stream: str, run_id: str) -> RunEnded | None:
    outcome = around.run(run_id)
    if outcome is None or not outcome.ended:
        return None
    session = ids.session_stream(outcome.session_key)
    return ended_again(stream, around.part(session, outcome.first_version - 1, outcome.last_version))
