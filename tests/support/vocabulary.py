"""Hypothesis strategies for logs made of the whole vocabulary: any event, few ids, so that events meet each other."""

import types
import typing
from typing import Any, Literal, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from intersession_events.basics.ids import CLOCK
from intersession_events.facts import (
    TOPICS,
    Event,
    Then,
    ToolCallHeld,
    access,
    delivery,
    exchange,
    log,
    run,
    schedule,
    session,
    spawn,
)

_KEYS = ["agent:main:main", "agent:main:whatsapp:group:1", "agent:ops:main", "agent:main:subagent:s"]
_IDS = ["a", "b", "c"]
_POOLS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["key", "target", "child", "speaker", "requester", "spawned_by"], st.sampled_from(_KEYS)),
    **dict.fromkeys(
        ["session_id", "previous_session_id", "child_session_id"], st.sampled_from(["g1", "g2", "g3"])
    ),
    **dict.fromkeys(
        ["run_id", "message_id", "exchange_id", "spawn_id", "delivery_id"], st.sampled_from(_IDS)
    ),
    "idempotency_key": st.none() | st.sampled_from(_IDS),
    "agent_id": st.sampled_from(["main", "ops"]),
    "json": st.just('{"type":"video"}'),
    "arguments": st.just("{}"),
    "extra": st.none(),
    "then": st.none(),
}
_TEXT = st.text(alphabet=st.sampled_from("ab \0é\U0001f600"), max_size=4)

_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    type(None): st.none(),
    bool: st.booleans(),
    int: st.integers(0, 50),
    str: _TEXT,
}


def strategy_of(kind: Any, name: str = "") -> st.SearchStrategy[Any]:
    """Return values of a type as the vocabulary uses it."""
    if name in _POOLS:
        return _POOLS[name]
    origin = get_origin(kind)
    if origin is Literal:
        return st.sampled_from(get_args(kind))
    if origin in {typing.Union, types.UnionType}:
        return st.one_of([strategy_of(part) for part in get_args(kind)])
    if origin is tuple:
        inner = get_args(kind)
        if inner[-1] is Ellipsis:
            return st.lists(strategy_of(inner[0]), max_size=2).map(tuple)
        return st.tuples(*[strategy_of(part) for part in inner])
    if origin is dict:
        return st.dictionaries(
            st.sampled_from(["label", "model", "sendPolicy"]), st.sampled_from(["allow", "deny"])
        )
    if kind in _PLAIN:
        return _PLAIN[kind]
    assert issubclass(kind, msgspec.Struct), kind
    return struct_of(kind)


def struct_of(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Return values of a struct."""
    hints = typing.get_type_hints(kind)
    return st.fixed_dictionaries(
        {name: strategy_of(hints[name], name) for name in kind.__struct_fields__}
    ).map(lambda values: kind(**values))


_POOLS["then"] = st.none() | struct_of(Then)
"""What follows in an event has nothing that follows in it."""


def full_of(kind: type[Any], text: str) -> Any:
    """Return a value of a type in which each field has something, and each that can be any text has this one."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return inner[0]
    if origin in {typing.Union, types.UnionType}:
        return full_of(next(part for part in inner if part is not type(None)), text)
    if origin is tuple:
        return tuple(full_of(part, text) for part in inner if part is not Ellipsis)
    if origin is dict:
        return {text: text}
    if issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        return kind(**{name: full_of(hints[name], text) for name in kind.__struct_fields__ if name != "then"})
    return text if kind is str else kind(7)


def _streams(kind: type[Event]) -> st.SearchStrategy[str]:
    if issubclass(kind, get_args(session.SessionEvent) + get_args(run.RunEvent)):
        return st.sampled_from([f"session:{key}" for key in _KEYS])
    if issubclass(kind, get_args(spawn.SpawnEvent)) and not issubclass(
        kind, get_args(exchange.ExchangeEvent)
    ):
        return st.sampled_from([f"spawn:{one}" for one in _IDS])
    if issubclass(kind, get_args(exchange.ExchangeEvent)):
        return st.sampled_from([f"{flow}:{one}" for flow in ("exchange", "spawn") for one in _IDS])
    if issubclass(kind, get_args(delivery.DeliveryEvent)):
        return st.sampled_from([f"delivery:{one}" for one in _IDS])
    if issubclass(kind, get_args(access.AccessEvent)):
        return st.just("access:operator")
    if issubclass(kind, get_args(schedule.ScheduleEvent)):
        return st.just("schedule:news")
    assert issubclass(kind, get_args(log.SystemEvent)), kind
    return st.just(CLOCK if kind is log.ClockStepped else "log")


def events() -> st.SearchStrategy[tuple[str, Event, int]]:
    """Return any event with a stream it may stand in and a time."""
    return st.sampled_from(list(TOPICS.values())).flatmap(
        lambda kind: st.tuples(_streams(kind), struct_of(kind), st.integers(0, 100))
    )


def logs(max_size: int = 30) -> st.SearchStrategy[list[tuple[str, Event, int]]]:
    """Return a log: events in the order they happened. A call is held once, since the id of a hold is derived of it."""
    return st.lists(events(), max_size=max_size).map(_held_once)


def _held_once(entries: list[tuple[str, Event, int]]) -> list[tuple[str, Event, int]]:
    held: set[str] = set()
    left: list[tuple[str, Event, int]] = []
    for entry in entries:
        if isinstance(entry[1], ToolCallHeld):
            if entry[1].hold_id in held:
                continue
            held.add(entry[1].hold_id)
        left.append(entry)
    return left
