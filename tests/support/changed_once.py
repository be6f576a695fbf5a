"""Every event of a recording with every field of it changed once, as somebody does who makes ids and hashes fit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from intersession_events.basics.errors import CorruptEvent, UnknownWord
from intersession_events.basics.ids import event_id
from intersession_events.facts import Event, decode, encode
from intersession_events.log.recorded import Recorded

ENVELOPE = ("causation", "correlation", "id", "time")


class Change(NamedTuple):
    """A recording with one field changed: of which event, which field, and the events as they are then."""

    at: Recorded
    field: str
    events: Sequence[Recorded]

    @property
    def name(self) -> str:
        """The topic and the field, the numbers of list items left out."""
        return f"{self.at.kind}.{self.field}"


def changes(log_id: str, events: Sequence[Recorded], *, fitting: bool) -> Iterator[Change]:
    """Yield the recording with each field of each event changed once.

    `fitting`: the event gets the id that it has by its new content, and whatever names it as its cause names that.
    """
    for number, recorded in enumerate(events):
        plain = msgspec.json.decode(encode(recorded.event))
        for path, others in _others(plain, ()):
            event = next(
                (one for one in map(_decoder(recorded), others) if one is not None and one != recorded.event),
                None,
            )
            if event is not None:
                other = msgspec.structs.replace(recorded, event=event)
                yield Change(recorded, path, _with(log_id, events, number, other, fitting=fitting))
        for name in ENVELOPE:
            if name == "id" and fitting:
                continue  # an id that fits is the one that it has
            value = getattr(recorded, name)
            changed = msgspec.structs.replace(recorded, **{name: _other(value)})
            yield Change(recorded, f"({name})", _with(log_id, events, number, changed, fitting=False))


def lessened(log_id: str, events: Sequence[Recorded]) -> Iterator[Change]:
    """Yield the recording with each number of each event made one less, with ids that fit: a bound may hide what is below it."""
    for number, recorded in enumerate(events):
        for path, less in _less(msgspec.json.decode(encode(recorded.event)), ()):
            event = _decoder(recorded)(less)
            if event is not None and event != recorded.event:
                other = msgspec.structs.replace(recorded, event=event)
                yield Change(recorded, path, _with(log_id, events, number, other, fitting=True))


def _with(
    log_id: str, events: Sequence[Recorded], number: int, changed: Recorded, *, fitting: bool
) -> list[Recorded]:
    found = list(events)
    before = events[number]
    if fitting and before.id == _derived(log_id, before):
        changed = msgspec.structs.replace(changed, id=_derived(log_id, changed))
        found = [
            msgspec.structs.replace(item, causation=changed.id) if item.causation == before.id else item
            for item in events
        ]
    found[number] = changed
    return found


def _derived(log_id: str, item: Recorded) -> str:
    return event_id(log_id, item.stream, item.version, item.topic)


def _decoder(recorded: Recorded) -> Callable[[Any], Event | None]:
    def decoded(plain: Any) -> Event | None:
        try:
            return decode(recorded.topic, msgspec.json.encode(plain))
        except (CorruptEvent, UnknownWord, msgspec.MsgspecError, ValueError):
            return None

    return decoded


def _others(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Iterator[Any]]]:
    """Yield the path of each leaf with the ways in which it can be changed; objects and lists also lose what they have."""
    where = ".".join(path)
    if isinstance(value, Mapping):
        for name, inner in value.items():
            for at, others in _others(inner, (*path, name)):
                yield at, ({**value, name: other} for other in others)
            yield (
                f"{where}.{name}-".lstrip("."),
                iter([{key: one for key, one in value.items() if key != name}]),
            )
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            for at, others in _others(inner, (*path, "*")):
                yield at, ([*value[:number], other, *value[number + 1 :]] for other in others)
        if value:
            yield f"{where}-", iter([value[:-1]])
            yield f"{where}+", iter([[*value, value[-1]]])
    else:
        yield where, _leaves(value)


def _less(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the path of each number, with the whole in which it is one less."""
    match value:
        case bool():
            pass
        case int():
            yield ".".join(path), value - 1
        case Mapping():
            for name, inner in value.items():
                for at, less in _less(inner, (*path, name)):
                    yield at, {**value, name: less}
        case list():
            for number, inner in enumerate(value):
                for at, less in _less(inner, (*path, "*")):
                    yield at, [*value[:number], less, *value[number + 1 :]]
        case _:
            pass


_WORDS = (
    "ok",
    "error",
    "timeout",
    "go_on",
    "edit",
    "drop",
    "end",
    "reply",
    "announce",
    "every-turn",
    "send",
    "message",
    "agent",
    "user",
    "assistant",
    "allow",
    "deny",
    "turn_limit",
    "reply_skip",
    "announced",
    "nothing",
    "keep",
    "delete",
    "run",
    "session",
    "rule",
    "setting",
    "interrupted",
)


def _leaves(value: Any) -> Iterator[Any]:
    match value:
        case bool():
            yield not value
        case int():
            yield value + 1
        case str():
            yield f"{value}x"
            for word in _WORDS:
                if word != value:
                    yield word
        case None:
            yield "x"
            yield 1
            yield True
        case _:
            pass


def _other(value: Any) -> Any:
    return (
        value + 7000
        if isinstance(value, int)
        else f"{(value or '0')[:-1]}{'1' if (value or '0')[-1] != '1' else '2'}"
    )
