"""Decides each append of an exchange, a spawn or a delivery again, from the state before it and its own decision record. Pure.

Nothing else is looked at: no actor, no clock, no chance, and no event of the append but for words, which a record only names.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from intersession_actors import delivery, exchange, spawn
from intersession_actors.policy import budget_of
from intersession_actors.replaying.redeciding.sources import Sources, are_erased
from intersession_actors.streams import (
    Record,
    Refused,
    Resume,
    Words,
    appends_in,
    record_in,
    spent_in,
    words_of,
)
from intersession_events import facts
from intersession_events.log import Recorded

S = TypeVar("S")


class Redecided(NamedTuple):
    """An append as it was recorded, and the events that the rules of today come to.

    `problem` says in words why it could not be decided again.
    """

    append: tuple[Recorded, ...]
    now: tuple[facts.Event, ...] = ()
    problem: str | None = None

    @property
    def recorded(self) -> tuple[facts.Event, ...]:
        """The events that were recorded."""
        return tuple(one.event for one in self.append)

    @property
    def is_same(self) -> bool:
        """Whether the rules of today say what was recorded."""
        return self.problem is None and self.now == self.recorded


class _Asked(NamedTuple):
    """A decision that was made: its record, where it is recorded, and the words that the record names."""

    sources: Sources
    record: Record
    append: Sequence[Recorded]
    words: Words

    @property
    def first(self) -> Recorded:
        return self.append[0]

    def outcome(self) -> object:
        """Return what a flow was told, where events say it; None where they are not here."""
        match self.record.asked:
            case "RunEnded":
                return self.sources.run_ended(self.first)
            case "DeliveryEnded":
                return self.sources.delivery_ended(self.first)
            case "Resume":
                return Resume(stream=self.first.stream)
            case _:
                return None


_Decided = tuple[object, Sequence[facts.Event] | Refused] | None
"""The command that was decided upon, and what it leads to now; None where the command is not to be had."""


def redecided_all(sources: Sources) -> Iterator[Redecided]:
    """Decide all appends of all exchanges, spawns and deliveries again."""
    return chain.from_iterable(redecided(sources, stream) for stream in sources.streams)


def redecided(sources: Sources, stream: str) -> Iterator[Redecided]:
    """Decide the appends of a stream again; none, where it is of another kind, was imported or begun by another's append."""
    match stream.partition(":")[0]:
        case "exchange":
            yield from _again(sources, stream, _folds_exchange, _exchange)
        case "spawn":
            yield from _again(sources, stream, _folds_spawn, _spawn)
        case "delivery":
            yield from _again(sources, stream, _folds_delivery, _delivery)
        case _:
            pass


_NO_RECORD: Final = "it has no decision record"
_NOT_HERE: Final = "what it was asked is not in this log"
_ERASED: Final = "words that it was decided upon were erased"


def _again(
    sources: Sources,
    stream: str,
    fold: Callable[[S | None, Recorded], S],
    decide: Callable[[_Asked, S | None], _Decided],
) -> Iterator[Redecided]:
    state: S | None = None
    for append in appends_in(sources.streams[stream]):
        first = append[0]
        if first.decision:
            yield _decided(sources, append, state, decide)
        elif state is not None:
            yield Redecided(append, problem=_NO_RECORD)
        for one in append:
            state = fold(state, one)


def _decided(
    sources: Sources,
    append: tuple[Recorded, ...],
    state: S | None,
    decide: Callable[[_Asked, S | None], _Decided],
) -> Redecided:
    try:
        asked = _Asked(sources, record_in(append[0].decision), append, words_of(append))
        return _compared(append, decide(asked, state))
    except Exception as error:  # noqa: BLE001 - a record that was made up can say anything
        return Redecided(
            append, problem=f"its decision record says nothing that could be decided upon: {error!r}"
        )


def _compared(append: tuple[Recorded, ...], decided: _Decided) -> Redecided:
    if decided is None:
        return Redecided(append, problem=_NOT_HERE)
    command, events = decided
    if isinstance(events, Refused):
        return Redecided(append, problem=f"it would be refused: {events.error}")
    found = Redecided(append, tuple(events))
    if not found.is_same and are_erased(append, command):
        return found._replace(problem=_ERASED)
    return found


def _folds_exchange(state: exchange.Exchange | None, recorded: Recorded) -> exchange.Exchange:
    if not isinstance(recorded.event, facts.ExchangeEvent):
        raise TypeError(recorded.topic)
    return exchange.evolve(state, recorded.event)


def _exchange(asked: _Asked, state: exchange.Exchange | None) -> _Decided:
    stream, record, first = asked.first.stream, asked.record, asked.first.event
    if state is None:
        if not isinstance(first, facts.ExchangeAccepted) or first.budget is None:
            return None
        # The event is what the door handed on; the decision has added what the chain had used.
        return first, [exchange.decide_open(first, first.budget, spent_in(record.knew))]
    state = replace(state, accepted=asked.sources.accepted_as(state.accepted, asked.first))
    command = exchange.command_in(record, stream, asked.words) or asked.outcome()
    if not isinstance(command, exchange.Command):
        return None
    now = exchange.circumstances_in(
        record, state, log_id=asked.sources.log_id_of(asked.first), stream=stream, words=asked.words
    )
    return command, exchange.decide(state, command, now)


def _folds_spawn(state: spawn.Spawn | None, recorded: Recorded) -> spawn.Spawn:
    if not isinstance(recorded.event, facts.SpawnEvent):
        raise TypeError(recorded.topic)
    return spawn.evolve(state, recorded.event)


def _spawn(asked: _Asked, state: spawn.Spawn | None) -> _Decided:
    stream, record, first = asked.first.stream, asked.record, asked.first
    if state is None:
        if not isinstance(first.event, facts.SpawnAccepted) or first.event.budget is None:
            return None
        return first.event, [spawn.decide_open(first.event, first.event.budget)]
    command = spawn.command_in(record, stream, asked.words) or asked.outcome()
    if not isinstance(command, spawn.Command):
        return None
    budget = budget_of(state.accepted, first.correlation, 0)
    now = spawn.circumstances_in(
        record, budget, log_id=asked.sources.log_id_of(asked.first), stream=stream, words=asked.words
    )
    return command, spawn.decide(state, command, now)


def _folds_delivery(state: delivery.Delivery | None, recorded: Recorded) -> delivery.Delivery:
    if not isinstance(recorded.event, facts.DeliveryEvent):
        raise TypeError(recorded.topic)
    return delivery.evolve(state, recorded.event, recorded.time, recorded.position)


def _delivery(asked: _Asked, state: delivery.Delivery | None) -> _Decided:
    command = delivery.command_in(asked.record, asked.first.stream, asked.words)
    if state is None or command is None:
        return None
    return command, delivery.decide(state, command, delivery.circumstances_in(asked.record))
