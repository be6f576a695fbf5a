"""Adds the texts of runs to events of exchanges and spawns, which don't repeat them: a text is stored where it was sent and received.

A reader that tells people of such an event puts the run's text, its error and its use in it first. What the event has itself stays:
an import may show the answer and no run.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Final, TypeVar, cast

import msgspec

from intersession_events import facts
from intersession_events.basics.ids import delivery_stream, session_stream
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, StreamPart, parts_in
from intersession_projections.views.flows.rows import ExchangeSummary
from intersession_projections.views.run_outcomes.runs import Runs
from intersession_projections.views.sessions.list import Sessions

E = TypeVar("E", bound=msgspec.Struct)
_SPAWN: Final = "spawn:"
_CAN_NAME: Final = (facts.Deciding, facts.ExchangeHeld, facts.FlowAccepted)


class Replies:
    """The inputs and replies of runs, and the announced texts.

    Their ends stand in the log before whatever names the runs. What begins a flow, or announces, stands in the same append before
    the run or the delivery that has its text.
    """

    def __init__(self, events: Iterable[Recorded] = ()) -> None:
        self._heard: dict[str, str] = {}
        self._ends: dict[str, facts.RunEnd] = {}
        self._sent: dict[str, str] = {}
        for recorded in events:
            self.note(recorded)

    def note(self, recorded: Recorded) -> None:
        """Note the text that an event gives a session or a channel, or the end of a run."""
        event = recorded.event
        if isinstance(event, facts.RunEnd):
            self._ends[event.run_id] = event
        elif isinstance(event, facts.DeliveryDecided):
            self._sent[event.delivery_id] = event.text
        elif isinstance(event, facts.RunQueued | facts.MessageRecorded):
            message = event.message
            if message is not None and message.provenance is not None:
                self._heard[message.id] = facts.text_of(message)

    def with_texts(self, recorded: Recorded) -> Recorded:
        """Return an event with the texts of the runs that it names, as far as they are known."""
        event = recorded.event
        if not isinstance(event, _CAN_NAME):
            return recorded
        if isinstance(event, facts.FlowAccepted):
            event = cast("facts.Event", self._asking(event))
        elif recorded.stream.startswith(_SPAWN):
            handed = next(
                (part for part in facts.parts_of(event) if isinstance(part, facts.ResultHanded)), None
            )
            heard = None if handed is None else self._heard.get(handed.message_id)
            event = facts.with_parts(self._of_spawn(event, heard), lambda part: self._of_spawn(part, heard))
        else:
            edited = event.text if isinstance(event, facts.ExchangeReleased) else None
            event = facts.with_parts(self._filled(event, edited), lambda part: self._filled(part, edited))
        return msgspec.structs.replace(recorded, event=event)

    def lacks_text(self, recorded: Recorded) -> bool:
        """Whether an event begins a flow whose text has not come yet."""
        event = recorded.event
        return (
            isinstance(event, facts.FlowAccepted)
            and event.asked_text is None
            and event.message_id not in self._heard
        )

    def _asking(self, event: facts.FlowAccepted) -> facts.FlowAccepted:
        text = self._heard.get(event.message_id)
        return event if text is None or event.asked_text is not None else event.with_text(text)

    def _of_spawn(self, event: E, heard: str | None) -> E:
        if isinstance(event, facts.ChildEnded) and event.text is None and event.said != "nothing":
            end = self._ends.get(event.run_id)
            return msgspec.structs.replace(event, text=None if end is None else end.spoken)
        if isinstance(event, facts.AnnounceDecided) and event.text is None and not event.silent:
            text = heard if event.delivery_id is None else self._sent.get(event.delivery_id)
            return msgspec.structs.replace(event, text=text)
        return event

    def _filled(self, event: E, edited: str | None) -> E:
        if not isinstance(event, facts.TurnEnded | facts.ExchangeHeld | facts.AnnounceDecided):
            return event
        if event.text is not None:
            return event
        end = self._ends.get(event.run_id or "")
        said = None if end is None else end.spoken
        fields: dict[str, object] = {}
        if isinstance(event, facts.TurnEnded):
            fields["text"] = said if event.said != "nothing" else None
            fields["error"] = end.error if isinstance(end, facts.RunFailed) else event.error
        elif isinstance(event, facts.AnnounceDecided):
            fields["text"] = None if event.silent else said if event.edited_by is None else edited
        else:
            fields["text"] = said
        if isinstance(event, facts.TurnEnded | facts.AnnounceDecided):
            fields["usage"] = end.usage if isinstance(end, facts.RunCompleted) else event.usage
        return msgspec.structs.replace(event, **fields)


class LoggedTexts:
    """The inputs and replies of runs, read from a log run by run; an unknown run has none."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def asked(self, run_id: str) -> str:
        """Return the input of a run."""
        run = Runs(self._log).without_words(run_id)
        queued = [] if run is None else [facts.message_in(one.event) for one in self._log.at([run.accepted])]
        return "".join(facts.text_of(message) for message in queued if message is not None)

    def reply(self, run_id: str) -> str:
        """Return the reply of a run, or its text until it failed."""
        run = Runs(self._log).get(run_id)
        return "" if run is None else run.reply or ""


def held_in(log: Log, exchange: ExchangeSummary) -> facts.ExchangeHeld | None:
    """Return the event that holds an exchange now, with the waiting text; None if it is not held."""
    for recorded in parts_in(log.stream(exchange.stream, backwards=True)):
        if isinstance(recorded.event, facts.ExchangeHeld) and recorded.event.hold_id == exchange.hold_id:
            return cast("facts.ExchangeHeld", told_in(log, [recorded])[0].event)
    return None


def told_in(log: Log, events: Iterable[Recorded]) -> list[Recorded]:
    """Return events with the texts of the runs that they name, read from the log."""
    found = list(events)
    named = _Named()
    for recorded in found:
        named.note(recorded)
    runs = Runs(log).many_without_words(named.ends | named.asked) if named.ends or named.asked else {}
    places = {run.accepted for run_id, run in runs.items() if run_id in named.asked}
    places |= {run.position for run_id, run in runs.items() if run_id in named.ends and run.ended}
    parts = [StreamPart(delivery_stream(name), 0, 1) for name in named.sent]
    if named.left:
        of_each = Sessions(log).versions_of_messages(named.left)
        parts += [
            StreamPart(session_stream(key), version - 1, version)
            for (key, _), versions in zip(named.left, of_each, strict=True)
            for version in versions
        ]
    replies = Replies(log.at(places) if places else ())
    for recorded in chain.from_iterable(log.parts(parts) if parts else ()):
        replies.note(recorded)
    return [replies.with_texts(recorded) for recorded in found]


class _Named:
    """The texts of events: `ends` of runs, inputs of runs (`asked`), deliveries (`sent`), and messages without a run (`left`)."""

    def __init__(self) -> None:
        self.ends: set[str] = set()
        self.asked: set[str] = set()
        self.sent: set[str] = set()
        self.left: list[tuple[str, str]] = []

    def note(self, recorded: Recorded) -> None:
        """Note the names in an event, and in those that follow in it."""
        parts = facts.parts_of(recorded.event)
        is_of_spawn = recorded.stream.startswith(_SPAWN)
        for part in parts:
            if is_of_spawn and isinstance(part, facts.AnnounceDecided):
                if part.text is None and not part.silent:
                    self._announced(part, parts)
            else:
                self._note(part)

    def _announced(self, announced: facts.AnnounceDecided, parts: Iterable[msgspec.Struct]) -> None:
        if announced.delivery_id is not None:
            self.sent.add(announced.delivery_id)
        for part in parts:
            if not isinstance(part, facts.ResultHanded):
                continue
            if part.limit is None:
                self.asked.add(part.run_id)
            else:
                self.left.append((part.requester, part.message_id))

    def _note(self, event: msgspec.Struct) -> None:
        match event:
            case facts.FlowAccepted(asked_text=None):
                self.asked.add(event.run_id)
            case facts.ChildEnded(said="nothing"):
                pass
            case facts.TurnEnded() | facts.ExchangeHeld() | facts.AnnounceDecided() | facts.ChildEnded():
                if event.text is None and event.run_id is not None:
                    self.ends.add(event.run_id)
            case _:
                pass
