"""Events of exchanges and spawns with the texts of the runs that they name: a text is stored where it was said and where it was heard.

A reader that tells people of such an event puts the run's text, its error and its use in it first. What the event has itself stays:
an import may show the answer and no run.
"""

from collections.abc import Iterable
from typing import Final, TypeVar, cast, get_args

import msgspec

from intersession_events import facts
from intersession_events.log import Log, Recorded, parts_in
from intersession_projections.flows import ExchangeSummary
from intersession_projections.run_outcomes.runs import Runs

E = TypeVar("E", bound=msgspec.Struct)
_Naming = facts.TurnEnded | facts.ExchangeHeld | facts.AnnounceDecided
_Asking = facts.ExchangeAccepted | facts.SpawnAccepted
_CAN_NAME: Final = (facts.Deciding, facts.ExchangeHeld, *get_args(_Asking))


class Replies:
    """What runs were asked and what they replied.

    Their ends stand in the log before whatever names the runs; what begins a flow stands in the same append before the run that has
    its text.
    """

    def __init__(self, events: Iterable[Recorded] = ()) -> None:
        self._asked: dict[str, str] = {}
        self._ends: dict[str, facts.RunEnd] = {}
        for recorded in events:
            self.note(recorded)

    def note(self, recorded: Recorded) -> None:
        """Know what a run is asked, or how it ended, if this says so."""
        event = recorded.event
        if isinstance(event, facts.RunEnd):
            self._ends[event.run_id] = event
        elif isinstance(event, facts.RunQueued) and event.flow is not None and event.message is not None:
            self._asked[event.run_id] = facts.text_of(event.message)

    def told(self, recorded: Recorded) -> Recorded:
        """Return an event with the texts of the runs that it names, as far as their ends are known."""
        event = recorded.event
        if not isinstance(event, _CAN_NAME):
            return recorded
        if isinstance(event, _Asking):
            return msgspec.structs.replace(recorded, event=self._with_text(event))
        edited = event.text if isinstance(event, facts.ExchangeReleased) else None
        event = facts.with_parts(self._filled(event, edited), lambda part: self._filled(part, edited))
        return msgspec.structs.replace(recorded, event=event)

    def lacks_text(self, recorded: Recorded) -> bool:
        """Whether an event begins a flow whose text has not come yet."""
        event = recorded.event
        return isinstance(event, _Asking) and _text_in(event) is None and event.run_id not in self._asked

    def _with_text(self, event: _Asking) -> _Asking:
        text = self._asked.get(event.run_id)
        if text is None or _text_in(event) is not None:
            return event
        name = "message" if isinstance(event, facts.ExchangeAccepted) else "task"
        return msgspec.structs.replace(event, **{name: text})

    def _filled(self, event: E, edited: str | None) -> E:
        if not isinstance(event, facts.TurnEnded | facts.ExchangeHeld | facts.AnnounceDecided):
            return event
        if event.text is not None:
            return event
        end = self._ends.get(event.run_id or "")
        said = None if end is None else facts.reply_of(end)
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
    """What runs were asked, and what they replied, read from a log run by run; nothing of a run that is not there."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def asked(self, run_id: str) -> str:
        """Return what a run was asked."""
        run = Runs(self._log).without_words(run_id)
        queued = [] if run is None else [facts.message_in(one.event) for one in self._log.at([run.accepted])]
        return "".join(facts.text_of(message) for message in queued if message is not None)

    def reply(self, run_id: str) -> str:
        """Return what a run replied, or had said before it failed."""
        run = Runs(self._log).get(run_id)
        return "" if run is None else run.reply or ""


def _text_in(event: _Asking) -> str | None:
    return event.message if isinstance(event, facts.ExchangeAccepted) else event.task


def held_in(log: Log, exchange: ExchangeSummary) -> facts.ExchangeHeld | None:
    """Return the event by which an exchange is held now, with the text that waits; None if it is not."""
    for recorded in parts_in(log.stream(exchange.stream, backwards=True)):
        if isinstance(recorded.event, facts.ExchangeHeld) and recorded.event.hold_id == exchange.hold_id:
            return cast("facts.ExchangeHeld", told_in(log, [recorded])[0].event)
    return None


def told_in(log: Log, events: Iterable[Recorded]) -> list[Recorded]:
    """Return events with the texts of the runs that they name, read from the log."""
    found = list(events)
    named = {
        part.event.run_id
        for part in parts_in(found)
        if isinstance(part.event, _Naming) and part.event.text is None and part.event.run_id is not None
    }
    asked = {
        one.event.run_id for one in found if isinstance(one.event, _Asking) and _text_in(one.event) is None
    }
    runs = Runs(log).many_without_words(named | asked) if named or asked else {}
    places = {run.accepted for run_id, run in runs.items() if run_id in asked}
    places |= {run.position for run_id, run in runs.items() if run_id in named and run.ended}
    replies = Replies(log.at(places) if places else ())
    return [replies.told(recorded) for recorded in found]
