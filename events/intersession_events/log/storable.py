"""Whether an event can be stored so that it is readable for ever, and by everybody's JSON: topic and payload of one that can."""

from functools import cache
from typing import Final, cast

import msgspec
from msgspec import inspect

from intersession_events.errors import CorruptEvent, NotStorable, UnknownTopic
from intersession_events.facts import decode, encode, topic_of
from intersession_events.log.recorded import Draft

_LARGEST: Final = 2**53 - 1  # RFC 8785 numbers are doubles


def payload_of(draft: Draft) -> tuple[str, bytes]:
    """Return topic and payload of an event that will be readable for ever.

    Raises:
        NotStorable: it holds a lone surrogate, a number that is no integer below 2**53, or a value of a wrong type.
    """
    event = draft.event
    try:
        topic = topic_of(event)
        if (where := _unfit([("time", draft.time), (topic, event)])) is not None:
            raise NotStorable(f"{topic}: {where} holds a value that is no text, truth or integer below 2**53")
        payload = draft.payload or encode(event)
        # A value of a wrong type is encoded without a word, and so is a payload that is of another event.
        same = decode(topic, payload) == event
    except KeyError:
        raise NotStorable(f"{type(event).__name__} is in no registry") from None
    except (ValueError, TypeError, RecursionError, CorruptEvent, UnknownTopic) as error:
        if isinstance(error, NotStorable):
            raise
        raise NotStorable(f"{type(event).__name__} can't be stored: {error}") from error
    if not same:
        raise NotStorable(f"{topic}: what would be read is not what was written")
    return topic, payload


_PLAIN: Final = frozenset({str, bool, type(None)})


def _unfit(left: list[tuple[str, object]]) -> str | None:
    """Name a number at or below values that RFC 8785 would not write as we do. The list is emptied."""
    # Runs for every field of every event: exact types first, many at once, and no call for each.
    while left:
        where, value = left.pop()
        if type(value) in _PLAIN:
            continue
        if isinstance(value, msgspec.Struct):
            for name in _doubtful(type(value)):
                field = getattr(value, name)
                if field is not None and not (type(field) is int and -_LARGEST <= field <= _LARGEST):
                    left.append((name, field))
        elif isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            if not _PLAIN.issuperset(map(type, items)):
                left.extend((where, item) for item in items)
        elif isinstance(value, dict):
            left.extend(cast("dict[str, object]", value).items())
        elif not isinstance(value, int) or not -_LARGEST <= value <= _LARGEST:
            return where
    return None


@cache
def _doubtful(cls: type[msgspec.Struct]) -> tuple[str, ...]:
    """Name the fields that can hold a number. In the others, what is no text or truth is not what is read again."""
    info = cast("inspect.StructType", inspect.type_info(cls))
    return tuple(field.name for field in info.fields if not _holds_no_number(field.type))


def _holds_no_number(kind: inspect.Type) -> bool:
    match kind:
        case inspect.StrType() | inspect.BoolType() | inspect.NoneType():
            return True
        case inspect.LiteralType(values=values):
            return all(isinstance(value, str) for value in values)
        case inspect.UnionType(types=kinds):
            return all(map(_holds_no_number, kinds))
        case inspect.VarTupleType(item_type=item):
            return _holds_no_number(item)
        case inspect.DictType(key_type=key, value_type=item):
            return _holds_no_number(key) and _holds_no_number(item)
        case _:
            return False
