"""All that an event led to, over all sessions, as a tree, and what of it is still open (WHY-1)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from intersession_events import facts
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, parts_in
from intersession_projections.questions.causes.in_words import EventInWords, Telling
from intersession_projections.questions.causes.links import Links
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.flows.rows import DeliverySummary
from intersession_projections.views.run_outcomes.runs import Runs

_DEEPEST: Final = 200
"""How many causes deep a tree goes: readers and writers of JSON give up at a thousand levels, and each takes two."""


class Effect(EventInWords, frozen=True, kw_only=True):
    """An event and all that it led to. `more` of what it led to is left out, where the tree would be too deep."""

    effects: tuple["Effect", ...] = ()
    more: int = 0


class StillOpen(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an event led to and is not over. `id` is of the exchange, the spawn, the run or the delivery."""

    kind: facts.Work
    id: str
    position: int
    event_id: str


class Led(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An event, what it led to, and what of that is not over, in log order."""

    event: EventInWords
    effects: tuple[Effect, ...]
    open: tuple[StillOpen, ...]


class Effects:
    """Queries on effects, by what each event says that it was caused by. The log is read `window` rows at a time."""

    def __init__(self, log: Log, *, window: int = 4096) -> None:
        self._log = log
        self._window = window
        self._telling = Telling(log)
        self._flows = Flows(log)
        self._runs = Runs(log)

    def of(self, position: int, *, to: int | None = None, own: Iterable[int] = ()) -> Led | None:
        """Return what an event led to, as the log stood at `to`; None for a position that has no event.

        `own` are the positions of all events of what it began: of an exchange, a spawn or a run.
        """
        causes = Links(self._log, window=self._window).effects(
            position, to=to, own=own, is_all=_Ends(self._log).are_all
        )
        events = {recorded.position: recorded for recorded in self._log.at([position, *causes])}
        if position not in events:
            return None
        told = dict(zip(events, self._telling.told_each(events.values()), strict=True))
        whole = _tree(position, causes, told)
        left = (one for one in _open(events.values()) if to is not None or self._is_open(one))
        return Led(event=told[position], effects=whole.effects, open=tuple(left))

    def _is_open(self, begun: StillOpen) -> bool:
        """Whether something is open now: what ended it may not have come of the same event."""
        if begun.kind == "run":
            return not self._runs.has_ended(begun.id)
        found = self._flows.one(begun.kind, begun.id)
        return found is None or found.is_open


class _Ends:
    """Says whether anything more can have come of events: of runs that go on, or of what has events behind those that were read."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._flows = Flows(log)
        self._runs = Runs(log)
        self._events: dict[int, Recorded] = {}

    def are_all(self, positions: Iterable[int], top: int) -> bool:
        """Whether nothing has come of the events at positions behind another position; the first one is the one asked about."""
        asked, *_rest = wanted = list(positions)
        new = [position for position in wanted if position not in self._events]
        self._events |= {recorded.position: recorded for recorded in self._log.at(new)}
        first = self._events.get(asked)
        if first is None or not isinstance(first.event, _WORK):
            return False
        things = {thing for recorded in self._events.values() for thing in _things(recorded)}
        return not any(self._goes_on(kind, name, top) for kind, name in things)

    def _goes_on(self, kind: str, name: str, top: int) -> bool:
        match kind:
            case "run":
                run = self._runs.get(name)
                again = None if run is None or not run.failed else self._runs.retry_of(name)
                ended = run is not None and run.ended and run.position <= top
                return not ended or (again is not None and again.accepted > top)
            case "exchange" | "spawn" | "delivery":
                flow = self._flows.one(kind, name)
                if flow is None or flow.position > top:
                    return True
                return not isinstance(flow, DeliverySummary) and flow.inferred
            case _:
                return True


def _things(recorded: Recorded) -> Iterator[tuple[str, str]]:
    """Yield whose event it is, by kind and id: of the run, the exchange, the spawn, the delivery; `import` is nobody's that ends."""
    event = recorded.event
    kind, _, name = recorded.stream.partition(":")
    if isinstance(event, facts.RunEvent):
        yield "run", event.run_id
    elif isinstance(event, facts.ExchangeEvent | facts.SpawnEvent | facts.DeliveryEvent):
        yield kind, name
    elif facts.is_imported(event):
        yield "import", name
    elif (message := facts.message_in(event)) is not None and message.run_id is not None:
        yield "run", message.run_id


_WORK: Final = (
    facts.MessageRecorded
    | facts.SessionOpened
    | facts.RouteChanged
    | facts.RunEvent
    | facts.ExchangeEvent
    | facts.SpawnEvent
    | facts.DeliveryEvent
)
"""Events of what is asked for and ends. Of others something may come at any time."""


def _tree(root: int, causes: Mapping[int, int], told: Mapping[int, EventInWords]) -> Effect:
    """Put effects below their causes, which come before them in `causes`: so the last ones are put in place first."""
    levels = {root: 0}
    for position, cause in causes.items():
        levels[position] = levels[cause] + 1
    below: dict[int, list[Effect]] = {position: [] for position in levels}
    number = dict.fromkeys(levels, 0)
    for position, cause in reversed(tuple(causes.items())):
        number[cause] += 1 + number[position]
        below[cause].append(_effect(told[position], below[position], levels[position], number[position]))
    return _effect(told[root], below[root], 0, number[root])


def _effect(told: EventInWords, effects: Sequence[Effect], level: int, number: int) -> Effect:
    fields = {name: getattr(told, name) for name in EventInWords.__struct_fields__}
    if level >= _DEEPEST:
        return Effect(**fields, more=number)
    return Effect(**fields, effects=tuple(sorted(effects, key=lambda effect: effect.position)))


def _open(events: Iterable[Recorded]) -> tuple[StillOpen, ...]:
    begun: dict[tuple[facts.Work, str], Recorded] = {}
    for recorded in parts_in(events):
        event = recorded.event
        if event.begins is not None:
            begun.setdefault((event.begins, _name(event.begins, recorded)), recorded)
        elif event.ends is not None and event.is_final:
            begun.pop((event.ends, _name(event.ends, recorded)), None)
    return tuple(
        StillOpen(kind=kind, id=name, position=recorded.position, event_id=recorded.id)
        for (kind, name), recorded in sorted(begun.items(), key=lambda item: item[1].position)
    )


def _name(kind: facts.Work, recorded: Recorded) -> str:
    """Return the id of what an event begins or ends."""
    return (facts.run_named(recorded.event) if kind == "run" else None) or recorded.stream.partition(":")[2]
