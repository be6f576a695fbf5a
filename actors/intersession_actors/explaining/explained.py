"""Explains events: every end, every refusal and every text that reached nobody has a rule (WHY-2). The debugger asks it."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from intersession_actors.explaining import deliveries, exchanges, runs, sessions, spawns, waiting
from intersession_actors.explaining.calls import explain_refusal, refusal_in
from intersession_actors.explaining.explanation import Explanation
from intersession_actors.explaining.settings import InForce
from intersession_actors.service import Reader
from intersession_events import facts
from intersession_events.log import Recorded

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
        for recorded in steps:
            if isinstance(recorded.event, facts.DeliveryFailed) and recorded.position < last[recorded.stream]:
                continue
            yield from (one for one in self.of(recorded) if one.code not in _WELL)

    def _of(self, recorded: Recorded) -> tuple[Explanation, ...]:
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
        stream: str | None = None
        for recorded in path:
            is_asked = stream is None
            stream = stream or recorded.stream
            if is_asked or recorded.stream == stream or _is_of_a_text(recorded):
                yield from (one for one in self.of(recorded) if is_asked or one.code not in _WELL)


def _is_of_a_text(recorded: Recorded) -> bool:
    return isinstance(recorded.event, facts.DeliveryEvent | facts.RunEvent)
