"""Says a place in words: after which event it is, how its run stood there, and what comes next (PLACE-5).

No word of what anybody said is in it, so that a place can be shown to whoever may know of its event.
"""

import msgspec

from intersession_events.log import Log, Recorded
from intersession_projections.flows import ExchangeSummary, Flows, SpawnSummary
from intersession_projections.places.located import Located, sessions_of, steps_of_flow
from intersession_projections.places.runs_named import Sees
from intersession_projections.positions import Span, backwards
from intersession_projections.wording import Sides, Words, short_name, words_of


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """A place in words. `event_id` and `time_ms` are those of the event that it is after.

    They are None before the first event, and where who asks may not know of that one.
    """

    position: int
    event_id: str | None
    time_ms: int | None
    text: str


class PlaceWords:
    """Says places of a log, to who sees certain sessions (`sees`; None: everything)."""

    def __init__(self, log: Log, sees: Sees | None = None) -> None:
        self._log = log
        self._flows = Flows(log)
        self._sees = sees

    def say(self, place: Located) -> Described:
        """Return a place in words."""
        # What happened last in the whole log is nothing for those who see a part of it.
        hidden = self._sees is not None and not place.is_named
        recorded = None if hidden else self._last(place.position)
        if recorded is None:
            text = "before the first event" if place.position == 0 else "as it stood there"
            return Described(position=place.position, event_id=None, time_ms=None, text=text)
        return Described(
            position=recorded.position,
            event_id=recorded.id,
            time_ms=recorded.time,
            text=self._after(recorded),
        )

    def next(self, place: Located) -> Described | None:
        """Return what comes next: among a run's own events for a place of a run, in the whole log else.

        None where nothing has come yet, or nothing that who asks may know of.
        """
        position = self._behind(place.position) if self._sees is None else 0
        if place.flow is not None:
            own = (step.position for step in steps_of_flow(self._log, place.flow))
            position = next((at for at in own if at > place.position), 0)
        recorded = self._at(position)
        if recorded is None:
            return None
        return Described(
            position=recorded.position,
            event_id=recorded.id,
            time_ms=recorded.time,
            text=self._event(recorded),
        )

    def _at(self, position: int) -> Recorded | None:
        if position <= 0:
            return None
        for recorded in self._log.all(after=position - 1, to=position):
            if self._sees is None or any(map(self._sees, sessions_of(self._log, recorded))):
                return recorded
        return None

    def _last(self, position: int) -> Recorded | None:
        """Return the event at a position; in a fork, which has not all of them, the last one before."""
        if position > 0 and self._log.forked is not None:
            found = next(backwards(self._log, Span(to=position)), None)
            position = 0 if found is None else found.position
        return self._at(position)

    def _behind(self, position: int) -> int:
        """Return where the next event stands; 0 where there is none."""
        return next((recorded.position for recorded in self._log.all(after=position, limit=1)), 0)

    def _after(self, recorded: Recorded) -> str:
        words = self._words(recorded)
        after = "" if words is None else words.after
        return after or f"after #{recorded.position}, {self._event(recorded)}"

    def _words(self, recorded: Recorded) -> Words | None:
        """Return an event of an exchange or a spawn in words; None for any other."""
        match self._flow(recorded):
            case ExchangeSummary() as exchange:
                asker = "the operator" if exchange.requester is None else short_name(exchange.requester)
                return words_of(recorded.event, None, sides=Sides(asker, short_name(exchange.target)))
            case SpawnSummary() as spawn:
                sides = Sides(short_name(spawn.asker), short_name(spawn.child))
                return words_of(recorded.event, None, sides=sides)
            case None:
                return None

    def _flow(self, recorded: Recorded) -> ExchangeSummary | SpawnSummary | None:
        kind, _, name = recorded.stream.partition(":")
        found: ExchangeSummary | SpawnSummary | None = None
        if kind == "exchange":
            found = self._flows.exchange(name)
        elif kind == "spawn":
            found = self._flows.spawn(name)
        return found if found is not None and found.accepted <= recorded.position else None

    def _event(self, recorded: Recorded) -> str:
        """Return an event in a few words: whose it is, and its name."""
        kind, _, name = recorded.stream.partition(":")
        event = recorded.kind.replace("_", " ")
        if (words := self._words(recorded)) is not None:
            return words.step or event
        match kind:
            case "session":
                return f"{short_name(name)}: {event}"
            case "exchange" | "spawn" | "delivery":
                return f"{kind} {name[:8]}: {event}"
            case _:
                return event
