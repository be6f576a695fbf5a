"""What could not be read again as it is, or would be hashed otherwise by somebody else, is refused before it is stored."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from intersession_events.basics.errors import NotStorable
from intersession_events.facts import (
    TOPICS,
    Budget,
    Event,
    Message,
    MessageRecorded,
    RunCompleted,
    RunQueued,
    RunStarted,
    SessionPatched,
    TextBlock,
    Usage,
)
from intersession_events.log.recorded import Draft
from intersession_events.log.storable import payload_of

LARGE = 2**53
MESSAGE = Message(id="m", role="user", content=(TextBlock(text="hello"),), timestamp=1)
SAID = MessageRecorded(session_id="s", message=MESSAGE)
QUEUED = RunQueued(run_id="r", session_id="s", step="message", answers="m", budget=Budget(root="r"))
STARTED = RunStarted(run_id="r", attempt=1, context_hash="h")
ENDED = RunCompleted(run_id="r", attempt=1, usage=Usage(input=1))
PATCHED = SessionPatched(values={"label": "it"})


def draft(event: Event, time: int = 1) -> Draft:
    return Draft(event=event, id="id", time=time)


def with_(event: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(event, **fields)


UNFIT: dict[str, Event] = {
    "a number where a text stands": with_(SAID, session_id=5),
    "a number in a list of texts": with_(QUEUED, budget=with_(QUEUED.budget, path=("a", 1))),
    "a number in a table of texts": with_(PATCHED, values={"label": 1}),
    "bytes where a text stands": with_(STARTED, context_hash=b"h"),
    "a text where a number stands": with_(STARTED, attempt="1"),
    "a fraction where a number stands": with_(STARTED, attempt=1.5),
    "a whole number as a fraction": with_(STARTED, attempt=1.0),
    "a truth where a number stands": with_(STARTED, attempt=True),
    "a number beyond 53 bits": with_(STARTED, deadline_ms=LARGE),
    "one beyond 53 bits in a part": with_(ENDED, usage=Usage(input=-LARGE)),
    "one beyond 53 bits in a part of a part": with_(
        QUEUED, budget=with_(QUEUED.budget, limits=with_(Budget(root="r").limits, tokens=LARGE))
    ),
    "a fraction in a message": with_(SAID, message=with_(MESSAGE, timestamp=0.5)),
    "a text that is none": with_(SAID, message=with_(MESSAGE, content="\ud800")),
    "a list for a tuple": with_(QUEUED, budget=with_(QUEUED.budget, path=["a"])),
}


@pytest.mark.parametrize("event", UNFIT.values(), ids=UNFIT.keys())
def test_what_would_not_be_read_as_it_was_written_is_refused(event: Event) -> None:
    with pytest.raises(NotStorable):
        payload_of(draft(event))


@pytest.mark.parametrize(
    "event", [SAID, QUEUED, STARTED, ENDED, PATCHED], ids=lambda event: type(event).__name__
)
def test_what_is_fit_is_stored(event: Event) -> None:
    payload_of(draft(event))
    with pytest.raises(NotStorable, match="time"):
        payload_of(draft(event, time=LARGE))


def numbers_in(kind: inspect.Type, seen: frozenset[type] = frozenset()) -> Iterator[inspect.IntType]:
    """Yield the type of each number that can stand in a value of a type."""
    if isinstance(kind, inspect.IntType):
        yield kind
    assert not isinstance(kind, inspect.FloatType | inspect.AnyType | inspect.RawType)
    match kind:
        case inspect.StructType() if kind.cls not in seen:
            parts = [field.type for field in kind.fields]
            seen |= {kind.cls}
        case inspect.UnionType():
            parts = list(kind.types)
        case inspect.TupleType():
            parts = list(kind.item_types)
        case inspect.VarTupleType():
            parts = [kind.item_type]
        case inspect.DictType():
            parts = [kind.key_type, kind.value_type]
        case _:
            parts = []
    for part in parts:
        yield from numbers_in(part, seen)


def test_each_number_of_each_event_has_its_bounds() -> None:
    numbers = [number for kind in TOPICS.values() for number in numbers_in(inspect.type_info(kind))]
    assert len(numbers) > 100
    assert {(number.ge, number.le) for number in numbers} == {(1 - LARGE, LARGE - 1)}
