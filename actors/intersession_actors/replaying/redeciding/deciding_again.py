"""Decides each append of an exchange, a spawn or a delivery again, from the state before it and its own decision record. Pure.

Nothing else is looked at: no actor, no clock, no chance, and no event of the append but for words, which a record only names.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from intersession_actors import delivery, exchange, spawn
from intersession_actors.flows import RecordRead, Rules
from intersession_actors.replaying.redeciding.sources import Sources, are_erased
from intersession_actors.streams import Record, Refused, Resume, appends_in, record_in, spent_in, words_of
from intersession_events import facts
from intersession_events.log import Recorded

S = TypeVar("S")
C = TypeVar("C")
N = TypeVar("N")


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


_Decided = tuple[object, Sequence[facts.Event] | Refused] | None
"""The command that was decided upon, and what it leads to now; None where the command is not to be had."""


def redecided_all(sources: Sources) -> Iterator[Redecided]:
    """Decide all appends of all exchanges, spawns and deliveries again."""
    return chain.from_iterable(redecided(sources, stream) for stream in sources.streams)


def redecided(sources: Sources, stream: str) -> Iterator[Redecided]:
    """Decide the appends of a stream again; none, where it is of another kind, was imported or begun by another's append."""
    match stream.partition(":")[0]:
        case "exchange":
            yield from _again(sources, stream, exchange.RULES)
        case "spawn":
            yield from _again(sources, stream, spawn.RULES)
        case "delivery":
            yield from _again(sources, stream, delivery.RULES)
        case _:
            pass


_NO_RECORD: Final = "it has no decision record"
_NOT_HERE: Final = "what it was asked is not in this log"
_ERASED: Final = "words that it was decided upon were erased"


def _again(sources: Sources, stream: str, rules: Rules[S, C, N]) -> Iterator[Redecided]:
    state: S | None = None
    for append in appends_in(sources.streams[stream]):
        if append[0].decision:
            yield _redecided(sources, append, state, rules)
        elif state is not None:
            yield Redecided(append, problem=_NO_RECORD)
        for one in append:
            state = rules.fold(state, one)


def _redecided(
    sources: Sources, append: tuple[Recorded, ...], state: S | None, rules: Rules[S, C, N]
) -> Redecided:
    try:
        record = record_in(append[0].decision)
        if state is None:
            return _compared(append, _begun(append[0].event, record))
        return _compared(append, _decided(sources, append, record, state, rules))
    except Exception as error:  # noqa: BLE001 - a record that was made up can say anything
        return Redecided(
            append, problem=f"its decision record says nothing that could be decided upon: {error!r}"
        )


def _begun(accepted: facts.Event, record: Record) -> _Decided:
    """Decide the beginning of an exchange or a spawn: the event is what the door handed on, with what the chain had used."""
    match accepted:
        case facts.ExchangeAccepted(budget=facts.Budget() as budget):
            return accepted, [exchange.decide_open(accepted, budget, spent_in(record.knew))]
        case facts.SpawnAccepted(budget=facts.Budget() as budget):
            return accepted, [spawn.decide_open(accepted, budget)]
        case _:
            return None


def _decided(
    sources: Sources, append: tuple[Recorded, ...], record: Record, state: S, rules: Rules[S, C, N]
) -> _Decided:
    first = append[0]
    if isinstance(state, exchange.Exchange):
        state = replace(state, accepted=sources.accepted_as(state.accepted, first))
    read = RecordRead(record, first.stream, sources.log_id_of(first), words_of(append))
    command = rules.command_in(read) or _outcome(sources, record, first)
    if not rules.takes(command):
        return None
    return command, rules.decide(state, command, rules.circumstances_in(read, state))


def _outcome(sources: Sources, record: Record, first: Recorded) -> object:
    """Return what a flow was told, where events say it; None where they are not here."""
    match record.asked:
        case "RunEnded":
            return sources.run_ended(first)
        case "DeliveryEnded":
            return sources.delivery_ended(first)
        case "Resume":
            return Resume(stream=first.stream)
        case _:
            return None


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
