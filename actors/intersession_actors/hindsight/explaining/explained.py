"""Explains events: every end, every refusal and every text that reached nobody has a rule (WHY-2). The debugger asks it."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.explaining import (
    changes,
    deliveries,
    exchanges,
    runs,
    sessions,
    spawns,
    waiting,
)
from intersession_actors.hindsight.explaining.around import Around
from intersession_actors.hindsight.explaining.calls import explain_refusal, refusal_in
from intersession_actors.hindsight.explaining.decisions import decision_of
from intersession_actors.hindsight.explaining.explanation import Explanation
from intersession_actors.hindsight.explaining.settings import InForce
from intersession_actors.owners.exchange import records as exchange_records
from intersession_actors.owners.spawn import records as spawn_records
from intersession_events import facts
from intersession_events.log.recorded import Recorded

_WELL = frozenset({"text", "announced", "handed_over", "returned", "full", "asked_for"})
"""Codes of normal ends: each is explained for that event alone, not beside another."""


class Explaining:
    """Explains events of a log, by the rules that were asked and what they looked at."""

    def __init__(self, reader: Reader, *, secretly: bool = False) -> None:
        self._reader = reader
        self._secretly = secretly
        self._in_force = InForce(reader.log)
        self._around = Around(reader.log)
        self._exchanges: dict[int, changes.Decision | None] = {}
        self._spawns: dict[int, spawns.SpawnDecision | None] = {}
        """The decisions by the positions of their events: an event may say several ends."""

    def of(self, recorded: Recorded) -> tuple[Explanation, ...]:
        """Return why an event is as it is; nothing for one that neither ends, refuses nor keeps anything waiting.

        `secretly` shows the rule alone: what it looked at is the operator's to see.
        """
        found = self._of(recorded)
        if not self._secretly:
            return found
        return tuple(replace(one, text="", inputs=(), instead=(), as_decided=None) for one in found)

    def of_all(self, events: Iterable[Recorded]) -> Iterator[Explanation]:
        """Yield why events are as they are that did not go as they are meant to. Of attempts at one text the last says it all."""
        steps = list(events)
        last = {step.stream: step.position for step in steps if isinstance(step.event, facts.DeliveryFailed)}
        asked = [
            step
            for step in steps
            if not isinstance(step.event, facts.DeliveryFailed) or step.position >= last[step.stream]
        ]
        self._around.look(asked)
        for step in asked:
            yield from (one for one in self.of(step) if one.code not in _WELL)

    def _of(self, recorded: Recorded) -> tuple[Explanation, ...]:
        return tuple(one for part in recorded.parts() for one in self._of_part(part))

    def _of_part(self, recorded: Recorded) -> tuple[Explanation, ...]:
        around, event = self._around, recorded.event
        match event:
            case _ if isinstance(event, exchanges.Ending) and recorded.stream.startswith("exchange:"):
                return (self._end_of_exchange(recorded, event),)
            case _ if isinstance(event, spawns.Ending):
                at = recorded.position
                if at not in self._spawns:
                    self._spawns[at] = decision_of(around, recorded, spawn_records.RULES)
                return (spawns.explain_ending(around, recorded, event, self._spawns[at]),)
            case facts.RunCompleted():
                return *runs.explain_silence(around, recorded, event), *runs.explain_summary(
                    around, recorded, event
                )
            case _ if isinstance(event, runs.Ending):
                return (runs.explain_ending(around, self._in_force, recorded, event),)
            case _ if isinstance(event, waiting.MayWait):
                return waiting.explain_waiting(self._reader, around, recorded, event)
            case facts.DeliveryFact():
                found = deliveries.explain_ending(self._reader, self._in_force, recorded, event)
                return () if found is None else (found,)
            case facts.SessionReset():
                over = sessions.explain_reset(recorded, event)
                return () if over is None else (over,)
            case _ if isinstance(event, sessions.Leaving):
                return (sessions.explain_leaving(self._reader, self._in_force, recorded, event),)
            case _:
                return tuple(
                    explain_refusal(self._reader, self._in_force, recorded, refusal)
                    for refusal in refusal_in(self._reader, recorded)
                )

    def _end_of_exchange(self, recorded: Recorded, event: exchanges.Ending) -> Explanation:
        at = recorded.position
        if at not in self._exchanges:
            self._exchanges[at] = decision_of(self._around, recorded, exchange_records.RULES)
        return exchanges.explain_ending(self._around, self._in_force, recorded, event, self._exchanges[at])

    def along(self, path: Iterable[Recorded]) -> Iterator[Explanation]:
        """Yield why an event is as it is, and then why its causes in the same stream are that did not go as they are meant to."""
        events = list(path)
        of_text = facts.DeliveryEvent | facts.RunEvent
        asked = [one for one in events if one.stream == events[0].stream or isinstance(one.event, of_text)]
        self._around.look(asked)
        for recorded in asked:
            found = self.of(recorded)
            last = found[-1] if found and recorded is events[0] else None
            yield from (one for one in found if one is last or one.code not in _WELL)
