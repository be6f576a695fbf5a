"""Explains events: every end, every refusal and every text that reached nobody has a rule (WHY-2). The debugger asks it."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from intersession_actors.explaining import deliveries, exchanges, runs, sessions, spawns, waiting
from intersession_actors.explaining.calls import explain_refusal, refusal_in
from intersession_actors.explaining.explanation import Explanation
from intersession_actors.explaining.settings import InForce
from intersession_actors.service import Reader
from intersession_events import facts
from intersession_events.log import Log, Recorded, for_each

_WELL = frozenset({"text", "announced", "handed_over"})
"""Codes of what went as it is meant to: it is explained to whoever asks for that event, not beside another."""


class Explaining:
    """Explains events of a log, by the rules that were asked and what they looked at."""

    def __init__(self, reader: Reader, *, secretly: bool = False) -> None:
        self._reader = reader
        self._secretly = secretly
        self._in_force = InForce(reader.log)

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
        for found in self._of_each(asked):
            yield from (one for one in found if one.code not in _WELL)

    def _of_each(self, events: Sequence[Recorded]) -> list[tuple[Explanation, ...]]:
        """Return why each of some events is as it is; what they are judged by is read together."""

        def reading(log: Log) -> Callable[[Recorded], tuple[Explanation, ...]]:
            return Explaining(self._reader.on(log), secretly=self._secretly).of

        return for_each(self._reader.log, events, reading)

    def _of(self, recorded: Recorded) -> tuple[Explanation, ...]:
        return tuple(one for part in recorded.parts() for one in self._of_part(part))

    def _of_part(self, recorded: Recorded) -> tuple[Explanation, ...]:
        log, event = self._reader.log, recorded.event
        match event:
            case facts.LoopEnded() | facts.ExchangeClosed():
                return (exchanges.explain_ending(log, self._in_force, recorded, event),)
            case facts.AnnounceDecided() if recorded.stream.startswith("exchange:"):
                return (exchanges.explain_ending(log, self._in_force, recorded, event),)
            case facts.AnnounceDecided() | facts.SpawnClosed():
                return (spawns.explain_ending(log, recorded, event),)
            case facts.RunFailed() | facts.RunAborted() | facts.RunInterrupted() | facts.LateReplyDropped():
                return (runs.explain_ending(log, self._in_force, recorded, event),)
            case facts.RunCompleted():
                return runs.explain_silence(log, recorded, event)
            case (
                facts.DeliveryFailed()
                | facts.DeliveryUnknown()
                | facts.DeliveryDenied()
                | facts.DeliveryWithheld()
            ):
                found = deliveries.explain_ending(self._reader, self._in_force, recorded, event)
                return () if found is None else (found,)
            case facts.RunQueued() | facts.DeliveryDecided() | facts.ExchangeHeld():
                return waiting.explain_waiting(self._reader, recorded, event)
            case facts.SessionArchived() | facts.ThreadUnbound() | facts.ChildArchived():
                return (sessions.explain_leaving(self._reader, self._in_force, recorded, event),)
            case _:
                return tuple(
                    explain_refusal(self._reader, self._in_force, recorded, refusal)
                    for refusal in refusal_in(self._reader, recorded)
                )

    def along(self, path: Iterable[Recorded]) -> Iterator[Explanation]:
        """Yield why an event is as it is, and then why its causes in the same stream are that did not go as they are meant to."""
        events = list(path)
        asked = [one for one in events if one.stream == events[0].stream or _is_of_a_text(one)]
        for recorded, found in zip(asked, self._of_each(asked), strict=True):
            last = found[-1] if found and recorded is events[0] else None
            yield from (one for one in found if one is last or one.code not in _WELL)


def _is_of_a_text(recorded: Recorded) -> bool:
    return isinstance(recorded.event, facts.DeliveryEvent | facts.RunEvent)
