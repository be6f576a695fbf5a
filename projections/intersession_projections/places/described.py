"""Says a place in words: after which event it is, how its run stood there, and what comes next (PLACE-5).

No word of what anybody said is in it, so that a place can be shown to whoever may know of its event.
"""

import msgspec

from intersession_events import facts
from intersession_events.log import Log, Recorded
from intersession_projections.flows import ExchangeSummary, Flows, SpawnSummary
from intersession_projections.places.located import Located, sessions_of, steps_of_flow
from intersession_projections.places.runs_named import Sees
from intersession_projections.places.short_names import short_name
from intersession_projections.positions import Span, backwards
from intersession_projections.timeline import HELD_TEXTS, RELEASES, counted


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
        how: str | None = None
        match self._flow(recorded):
            case ExchangeSummary() as exchange:
                how = _in_exchange(recorded.event, exchange)
            case SpawnSummary() as spawn:
                how = _in_spawn(recorded.event, spawn)
            case None:
                pass
        return how or f"after #{recorded.position}, {self._event(recorded)}"

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
        match self._flow(recorded):
            case ExchangeSummary() as exchange:
                return _step_of_exchange(recorded.event, exchange) or event
            case SpawnSummary() as spawn:
                return _step_of_spawn(recorded.event, spawn) or event
            case None:
                pass
        match kind:
            case "session":
                return f"{short_name(name)}: {event}"
            case "exchange" | "spawn" | "delivery":
                return f"{kind} {name[:8]}: {event}"
            case _:
                return event


def _sides(exchange: ExchangeSummary) -> tuple[str, str]:
    asker = exchange.requester
    return "the operator" if asker is None else short_name(asker), short_name(exchange.target)


def _in_exchange(event: facts.Event, exchange: ExchangeSummary) -> str | None:
    """Return how an exchange stands after an event of it."""
    asker, target = _sides(exchange)
    match event:
        case facts.ExchangeAccepted():
            return f"after the start: {asker} has asked {target}, {target} has not answered yet"
        case facts.PrimaryEnded():
            return f"after the primary reply: {_has(target, event)}, {asker} has not yet"
        case facts.TurnRequested():
            return (
                f"in turn {event.turn}: {short_name(event.speaker)} has been asked, and has not answered yet"
            )
        case facts.TurnReplied():
            speaker = short_name(event.speaker)
            other = target if speaker == asker else asker
            return f"after turn {event.turn}: {_has(speaker, event)}, {other} has not yet"
        case facts.LoopEnded():
            return f"after the loop: it ended after {counted(event.turns, 'turn')} ({event.reason})"
        case facts.ExchangeHeld():
            return f"held: {HELD_TEXTS[event.step]} of {short_name(event.speaker)} waits for a release"
        case facts.ExchangeReleased():
            return f"after the release: whoever released it {RELEASES[event.action]}"
        case facts.ExchangeClosed():
            return f"after the end: {asker} and {target} are done ({event.reason})"
        case _:
            return _in_announce(event)


def _in_spawn(event: facts.Event, spawn: SpawnSummary) -> str | None:
    """Return how a spawn stands after an event of it."""
    asker, child = short_name(spawn.asker), short_name(spawn.child)
    match event:
        case facts.SpawnAccepted():
            return f"after the start: {asker} has spawned {child}, which has not ended its task yet"
        case facts.ChildEnded():
            how = "has done its task" if event.status == "ok" else f"has not done its task ({event.status})"
            return f"after the task: {child} {how}, and nobody has been told yet"
        case facts.ResultHanded():
            return f"after the result was handed over: {asker} has it, and has not answered yet"
        case facts.SpawnClosed():
            return f"after the end: the spawn of {child} is over ({event.reason})"
        case facts.ChildArchived():
            return f"after the end of {child}: it has left the list ({event.reason})"
        case _:
            return _in_announce(event)


def _in_announce(event: facts.Event) -> str | None:
    match event:
        case facts.AnnounceRequested():
            return f"at the announce: {short_name(event.speaker)} has been asked for it, and has not answered yet"
        case facts.AnnounceDecided():
            what = (
                f"nothing is announced ({event.why})" if event.text is None else "there is a text to announce"
            )
            return f"after the announce was decided: {what}"
        case _:
            return None


def _step_of_exchange(event: facts.Event, exchange: ExchangeSummary) -> str | None:
    """Return an event of an exchange in a few words."""
    asker, target = _sides(exchange)
    match event:
        case facts.ExchangeAccepted():
            return f"{asker} asks {target}"
        case facts.PrimaryEnded():
            return f"the primary reply of {target}"
        case facts.TurnRequested():
            return f"turn {event.turn} is asked of {short_name(event.speaker)}"
        case facts.TurnReplied():
            return f"turn {event.turn} of {short_name(event.speaker)}"
        case facts.LoopEnded():
            return f"the loop ends ({event.reason})"
        case facts.ExchangeHeld():
            return f"{HELD_TEXTS[event.step]} of {short_name(event.speaker)} is held"
        case facts.ExchangeReleased():
            return f"a release ({event.action})"
        case facts.ExchangeClosed():
            return f"the end ({event.reason})"
        case _:
            return _step_of_announce(event)


def _step_of_spawn(event: facts.Event, spawn: SpawnSummary) -> str | None:
    """Return an event of a spawn in a few words."""
    asker, child = short_name(spawn.asker), short_name(spawn.child)
    match event:
        case facts.SpawnAccepted():
            return f"{asker} spawns {child}"
        case facts.ChildEnded():
            return f"{child} ends its task ({event.status})"
        case facts.ResultHanded():
            return f"the result is handed to {asker}"
        case facts.SpawnClosed():
            return f"the end ({event.reason})"
        case facts.ChildArchived():
            return f"{child} leaves the list ({event.reason})"
        case _:
            return _step_of_announce(event)


def _step_of_announce(event: facts.Event) -> str | None:
    match event:
        case facts.AnnounceRequested():
            return f"the announce is asked of {short_name(event.speaker)}"
        case facts.AnnounceDecided():
            return "the announce is decided"
        case _:
            return None


def _has(speaker: str, event: facts.PrimaryEnded | facts.TurnReplied) -> str:
    if event.status != "ok":
        return f"{speaker} has not answered ({event.status})"
    return f"{speaker} has answered" if event.text is not None else f"{speaker} has answered without a text"
