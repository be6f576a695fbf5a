"""Repeats judgements of doors from their records: refusals, and calls that were let in. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from intersession_actors.owners.streams.commands import Refused
from intersession_actors.owners.streams.judgements import (
    Listed,
    judged_by_door,
    judgement_in,
    record_within,
    said_by,
)
from intersession_actors.owners.streams.records import Record, record_in
from intersession_actors.rules.errors import Judgement
from intersession_actors.rules.policy.judgements import denial_of
from intersession_events import facts
from intersession_events.log.recorded import Recorded


class Judged(NamedTuple):
    """A recorded judgement: the code of its refusal, and today's verdict.

    None: it was allowed. `judgement` is None where the record can't be read, and `problem` says why.
    """

    judgement: Judgement | None
    was: str | None
    now: str | None = None
    unread: str | None = None

    @property
    def problem(self) -> str | None:
        """The difference in words; None if there is none."""
        if self.unread is not None:
            return f"its decision record says nothing that could be judged: {self.unread}"
        if self.was == self.now:
            return None
        return f"it was {_words(self.was)}, and today it would be {_words(self.now)}"


def judged_again(recorded: Recorded, listed: Listed) -> Iterator[Judged]:
    """Repeat the judgement in a door's event: a receipt, a guard's refusal, or a tool's answer."""
    if not recorded.decision:
        return
    try:
        judgement = judged_in(recorded, listed)
        if judgement is not None:
            denial = denial_of(judgement)
            now = None if denial is None else denial.code
            yield Judged(judgement, _was(recorded.event, now), now)
    except Exception as error:  # noqa: BLE001 - a record that was made up can say anything
        yield Judged(None, None, unread=repr(error))


def judged_in(recorded: Recorded, listed: Listed) -> Judgement | None:
    """Return the judgement in an event; None if it has none.

    Raises:
        ValueError: the record says nothing that could be judged.
    """
    if not recorded.decision:
        return None
    record = record_in(recorded.decision)
    if (within := record.inputs.get("judged")) is not None:
        record = record_within(within)
    return judgement_in(record, said_by(recorded.event), listed)


def refused_at_door(record: Record, accepted: facts.FlowAccepted, listed: Listed) -> Refused | None:
    """Return why a door would now refuse a call that it let in, from its record; None if it would not.

    Raises:
        ValueError: the record says nothing that could be judged.
    """
    for judgement in judged_by_door(record, accepted, listed):
        denial = denial_of(judgement)
        if denial is not None:
            what = type(judgement.asked).__name__
            return Refused(code=denial.code, error=f"{what}: {', '.join((denial.code, *denial.settings))}")
    return None


@facts.ready
class _Answer(msgspec.Struct):
    """The relevant part of a tool's answer."""

    code: str | None = None


def _was(event: facts.Event, now: str | None) -> str | None:
    """Return the code of the refusal that an event says; of one whose words are erased, the one that would be said now."""
    match event:
        case facts.AccessRecorded(denied=denied):
            return denied[-1][1] if denied else None
        case facts.SendRefused(code=code):
            return code
        case facts.DeliveryDenied():
            return "policy_denied"
        case facts.MessageRecorded(message=message):
            text = facts.text_of(message)
            is_erased = text == facts.ERASED
            return now or "erased" if is_erased else msgspec.json.decode(text, type=_Answer).code
        case _:
            return None


def _words(code: str | None) -> str:
    return "allowed" if code is None else f"refused ({code})"
