"""What came of a turn, and events of a session, as JSON between a worker and the writer of the log (WORK-5)."""

from typing import Final

import msgspec

from intersession_actors.outside.agents.result import AgentResult, Answered, Broke
from intersession_events.basics.errors import CorruptEvent
from intersession_events.facts import decode, encode, ready
from intersession_events.log.recorded import Recorded


@ready
class _Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A result: one of the two."""

    answered: Answered | None = None
    broke: Broke | None = None


@ready
class EventLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A recorded event, as `worker.events` gives it."""

    position: int
    stream: str
    version: int
    topic: str
    event: str
    id: str
    time: int
    causation: str | None
    correlation: str | None
    epoch: int
    prev: str
    digest: str
    hash: str
    decision: str = ""


_DECODER: Final = msgspec.json.Decoder(_Told)


def encoded_result(result: AgentResult) -> bytes:
    """Return the answer to a call of an agent (`TakesWork.answer`)."""
    told = _Told(answered=result) if isinstance(result, Answered) else _Told(broke=result)
    return msgspec.json.encode(told)


def decoded_result(content: bytes) -> AgentResult:
    """Return what a worker says that came of a call of an agent. What it answered is yet to be checked.

    Raises:
        ValueError: that is no result.
    """
    try:
        told = _DECODER.decode(content)
    except RecursionError as error:
        raise ValueError("too many lists and objects inside each other") from error
    result = told.answered or told.broke
    if result is None:
        raise ValueError("it has neither answered nor broke")
    return result


def event_line(recorded: Recorded) -> EventLine:
    """Return an event for a worker."""
    return EventLine(
        **{name: getattr(recorded, name) for name in EventLine.__struct_fields__ if name != "event"},
        event=encode(recorded.event).decode(),
    )


def recorded_of(line: object) -> Recorded:
    """Return an event from the answer of `worker.events`.

    Raises:
        CorruptEvent: it is none.
    """
    try:
        given = msgspec.convert(line, EventLine)
    except msgspec.ValidationError as error:
        raise CorruptEvent(f"the writer gave what is no event: {error}") from error
    fields = msgspec.structs.asdict(given)
    return Recorded(**fields | {"event": decode(given.topic, given.event.encode())})
