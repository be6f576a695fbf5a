"""The record of a judgement at a door: the question, and the inputs that differ from the usual ones.

What the event that has the record says itself is not said again. A list of the settings that is long is there by its SHA-256,
and is found again among the configurations of the log.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

import msgspec

from intersession_actors.owners.streams.records import Record, record_of
from intersession_actors.rules.errors import Judgement, Known, Question
from intersession_actors.rules.policy.chain import CarryOn, Chain, Spent
from intersession_actors.rules.policy.judgements import KNOWN
from intersession_events import facts
from intersession_events.basics.plain_json import JsonMapping, JsonObject, JsonValue, is_list_like, is_object

Listed = Callable[[str], JsonValue]
"""Returns the list of a setting that has a digest; None where no configuration has one."""

SHORT: Final = 80
"""A list of up to this many bytes of JSON is stored by value."""

_LISTS: Final = frozenset({"allow", "alsoAllow", "allowAgents", "deny", "rules"})
"""The names of lists that configurations have as they are."""
_PLAIN: Final = frozenset({str, int, bool, float})
_K = TypeVar("_K", bound=Question | Known)
_NOTHING: Final[JsonObject] = {}
_ASKED: Final[Mapping[str, type[Question]]] = {asked.__name__: asked for asked in KNOWN}
_ENCODE: Final = msgspec.json.Encoder(order="sorted").encode


def said_by(event: facts.Fact) -> JsonObject:
    """Return the fields of a judgement that its event tells itself, by name."""
    match event:
        case facts.AccessRecorded(requester=requester, tool=tool, denied=denied):
            return {"requester": requester, "tool": tool, "key": denied[-1][0] if denied else None}
        case facts.SendRefused(requester=requester, target=target, chain=chain, code="cycle"):
            return {"requester": requester, "target": target, "waits": tuple(pairwise(chain[:-1]))}
        case facts.SendRefused(target=target, chain=chain):
            return {"target": target, "path": chain}
        case facts.MessageRecorded(message=message):
            return {"tool": message.tool_name}
        case facts.ExchangeAccepted(requester=requester, target=target, budget=budget):
            return {"requester": requester, "key": target, "target": target} | _came(budget)
        case facts.SpawnAccepted(requester=requester, child=child, budget=budget):
            return {"requester": requester, "key": child, "target": child} | _came(budget)
        case _:
            return {}


def _came(budget: facts.Budget | None) -> JsonObject:
    """Return how far a chain had come before an event's hop."""
    if budget is None:
        return {}
    return {"path": budget.path[:-1], "hops": budget.hops - 1, "limits": budget.limits}


def judged_at_door(
    judgements: Iterable[Judgement],
    event: facts.FlowAccepted,
    spent: Spent,
    age: int,
) -> JsonObject:
    """Return the part of an accept's record for the judgements at its door and of its chain, which all allowed it."""
    said: JsonObject = {**said_by(event), "spent": spent}
    chain = Judgement(
        CarryOn(target=said["target"]),
        Chain(path=said["path"], hops=said["hops"], limits=said["limits"], spent=spent, age=age),
    )
    return {"door": [judgement_value(one, said) for one in (*judgements, chain)]}


def judged_by_door(record: Record, event: facts.FlowAccepted, listed: Listed) -> Iterator[Judgement]:
    """Yield the judgements in an accept's record.

    Raises:
        ValueError: as `judgement_in`.
    """
    said: JsonObject = {**said_by(event), "spent": record.knew.get("spent", {})}
    for value in record.knew.get("door", ()):
        judgement = judgement_in(record_within(value), said, listed)
        if judgement is None:
            raise ValueError(f"{value} is no judgement")
        yield judgement


def judgement_record(judgement: Judgement, said: JsonMapping = _NOTHING) -> str:
    """Return the record of a judgement; `said` has the fields that its event tells, by name."""
    asked, known = judgement
    return record_of(type(asked).__name__, _left_of(asked, said), _left_of(known, said))


def judgement_value(judgement: Judgement, said: JsonMapping = _NOTHING) -> JsonObject:
    """Return the same for inclusion in another record; `record_within` reads it."""
    asked, known = judgement
    value = {"asked": type(asked).__name__, "with": _left_of(asked, said), "knew": _left_of(known, said)}
    return {name: part for name, part in value.items() if part}


def record_within(value: JsonValue) -> Record:
    """Return the record inside another one.

    Raises:
        ValueError: it is invalid.
    """
    return msgspec.convert(value, Record)


def _left_of(of: Question | Known, said: JsonMapping = _NOTHING) -> JsonObject:
    """Return the record's form of a question or its inputs: without defaults, and without what its event tells."""
    left: JsonObject = {}
    for field, value in zip(_fields(type(of)), msgspec.structs.astuple(of), strict=True):
        if field.stored in said:
            if value != said[field.stored]:
                plain = msgspec.to_builtins(value)
                if msgspec.to_builtins(said[field.stored]) != plain:
                    left[field.stored] = plain
        elif value != field.default:
            left[field.stored] = _short(field.stored, value)
    return left


def judgement_in(record: Record, said: JsonMapping, listed: Listed) -> Judgement | None:
    """Return the judgement in a record; None for a record of another kind.

    Raises:
        ValueError: the record says what can't be, or a list of the settings is in no configuration of the log.
    """
    asked = _ASKED.get(record.asked)
    if asked is None:
        return None
    return Judgement(
        _read(asked, said, record.inputs, listed), _read(KNOWN[asked], said, record.knew, listed)
    )


def lists_in(config: JsonValue) -> dict[str, JsonValue]:
    """Return the lists of a configuration that records can refer to, by their digests."""
    found: dict[str, JsonValue] = {}
    if is_object(config):
        for name, value in config.items():
            if name in _LISTS and is_list_like(value):
                found[_digest(value)] = value
            else:
                found |= lists_in(value)
    elif is_list_like(config):
        for value in config:
            found |= lists_in(value)
    return found


class _Field(NamedTuple):
    stored: str
    default: object


@lru_cache(64)
def _fields(kind: type[msgspec.Struct]) -> tuple[_Field, ...]:
    names, defaults = kind.__struct_encode_fields__, kind.__struct_defaults__
    required = (msgspec.NODEFAULT,) * (len(names) - len(defaults))
    return tuple(map(_Field, names, (*required, *defaults)))


def _read(kind: type[_K], said: JsonMapping, recorded: JsonObject, listed: Listed) -> _K:
    of_event = {name: said[name] for name in kind.__struct_encode_fields__ if name in said}
    return msgspec.convert(
        of_event | {name: _long(value, listed) for name, value in recorded.items()}, kind, strict=False
    )


def _short(name: str, value: object) -> JsonValue:
    if value.__class__ in _PLAIN:
        return value
    if isinstance(value, Known | facts.Limits):
        return {
            field.stored: _short(field.stored, one)
            for field, one in zip(_fields(type(value)), msgspec.structs.astuple(value), strict=True)
            if one != field.default
        }
    plain = _without_none(msgspec.to_builtins(value))
    if name in _LISTS and len(_ENCODE(plain)) > SHORT:
        return {"sha256": _digest(plain)}
    return plain


def _without_none(value: JsonValue) -> JsonValue:
    """Return a value in the form of recorded configurations: without missing fields."""
    if is_object(value):
        return {name: _without_none(inner) for name, inner in value.items() if inner is not None}
    return [_without_none(inner) for inner in value] if is_list_like(value) else value


def _long(value: JsonValue, listed: Listed) -> JsonValue:
    if not is_object(value):
        return value
    if value.keys() != {"sha256"}:
        return {name: _long(one, listed) for name, one in value.items()}
    found = listed(str(value["sha256"]))
    if found is None:
        raise ValueError("the settings that it was judged by are in no configuration of this log")
    return found


def _digest(value: JsonValue) -> str:
    return sha256(_ENCODE(value)).hexdigest()
