"""Says a place in words: after which event it is, how its run stood there, and what comes next (PLACE-5).

No word of what anybody said is in it, so that a place can be shown to whoever may know of its event.
"""

import msgspec

from intersession_events.facts import run_named
from intersession_events.log import Log, Recorded
from intersession_projections.flows import DeliverySummary, ExchangeSummary, Flows, SpawnSummary, Summary
from intersession_projections.places.located import Located, sessions_of, steps_of_flow
from intersession_projections.places.runs_named import Flow, Sees
from intersession_projections.run_outcomes import RunOutcome, Runs
from intersession_projections.sessions import SessionNames
from intersession_projections.spans import Span, backwards
from intersession_projections.wording import Sides, Words, counted, words_of


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
        self._runs = Runs(log)
        self._called = SessionNames(log, sees).one
        self._sees = sees

    def say(self, place: Located, of: Flow | None = None) -> Described:
        """Return a place in words: where it is looked at for one run, `of`, as that run stood there."""
        if of is None:
            return self._said(place)
        own = self.last_of(of, place.position)
        if own is None:
            said = self._said(place)
            return msgspec.structs.replace(said, text=f"before the start; {said.text}")
        if own.position == place.position:
            return self._said(msgspec.structs.replace(place, is_named=True))
        stood = f"{how}, at #{own.position}" if (how := self._words(own).after) else self._after(own)
        later = counted(place.position - own.position, "event")
        return msgspec.structs.replace(self._said(place), text=f"{stood}, and {later} of the log later")

    def step_at(self, position: int) -> str:
        """Return which step an event is, as a place names it: `turn 2 is asked of research`. Empty for an event that is no step."""
        recorded = self._at(position)
        return "" if recorded is None else self._words(recorded).step

    def last_of(self, flow: Flow, position: int) -> Recorded | None:
        """Return the last event of a run, up to a position, that the caller may know of."""
        own = [step.position for step in steps_of_flow(self._log, flow)]
        return next(filter(None, map(self._at, (at for at in reversed(own) if at <= position))), None)

    def _said(self, place: Located) -> Described:
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

    def next(self, place: Located, of: Flow | None = None) -> Described | None:
        """Return what comes next: among a run's own events for a place of a run, or looked at for one; in the whole log else.

        None where nothing has come yet, or nothing that who asks may know of.
        """
        position = self._behind(place.position) if self._sees is None else 0
        flow = of if place.flow is None else place.flow
        if flow is not None:
            own = (step.position for step in steps_of_flow(self._log, flow))
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
        return self._words(recorded).after or f"after #{recorded.position}, {self._event(recorded)}"

    def _words(self, recorded: Recorded) -> Words:
        """Return an event in words, by the names of those who take part; how all stands then, where that is of its own run."""
        event, called = recorded.event, self._called
        kind, _, name = recorded.stream.partition(":")
        match self._flow(kind, name, recorded.position):
            case ExchangeSummary() as exchange:
                asker = "the operator" if exchange.requester is None else called(exchange.requester)
                return words_of(event, None, sides=Sides(asker, called(exchange.target)), named=called)
            case SpawnSummary() as spawn:
                sides = Sides(called(spawn.asker), called(spawn.child))
                return words_of(event, None, sides=sides, named=called)
            case DeliverySummary() as text:
                return words_of(event, None, sides=Sides(called(text.session_key), text.channel))
            case None if kind == "session":
                run_id = run_named(event)
                run = None if run_id is None else self._runs.without_words(run_id)
                if run is None or run.accepted > recorded.position:
                    return words_of(event, name, named=called)._replace(after="")
                words = words_of(event, name, task=_task_of(run), named=called)
                return words if run.is_alone else words._replace(after="")
            case None:
                return Words(None, None, "")

    def _flow(self, kind: str, name: str, position: int) -> Summary | None:
        found: Summary | None = None
        match kind:
            case "exchange":
                found = self._flows.exchange(name)
            case "spawn":
                found = self._flows.spawn(name)
            case "delivery":
                found = self._flows.delivery(name)
            case _:
                pass
        return found if found is not None and found.accepted <= position else None

    def _event(self, recorded: Recorded) -> str:
        """Return an event in a few words: whose it is, and its name."""
        if step := self._words(recorded).step:
            return step
        kind, _, name = recorded.stream.partition(":")
        event = recorded.kind.replace("_", " ")
        match kind:
            case "session":
                return f"{self._called(name)}: {event}"
            case "exchange" | "spawn" | "delivery":
                return f"{kind} {name[:8]}: {event}"
            case _:
                return event


def _task_of(run: RunOutcome) -> str:
    """Return what a run was asked for."""
    match run.step:
        case "announce":
            return "the announce"
        case "reply":
            return f"turn {run.turn}"
        case "message" if run.is_alone:
            return "its answer"
        case "message":
            return "the primary reply" if run.spawn_id is None else "its task"
