"""Holds a fork against the log that it was made of: whether anything in it refers to what is not in it."""

from collections.abc import Iterator
from typing import Any

import msgspec

from intersession_events.facts import AccessRecorded, RunQueued
from intersession_events.log.recorded import Recorded

_KINDS = ("session:", "exchange:", "spawn:", "delivery:")


class Known:
    """What a log has up to a position: its events, its streams by what they are called, and its runs."""

    def __init__(self, events: list[Recorded]) -> None:
        self.events = events
        self.ids = {one.id for one in self.events}
        self.names = {
            one.stream.partition(":")[2]: one.stream for one in self.events if one.stream.startswith(_KINDS)
        }
        self.runs = {one.event.run_id for one in self.events if isinstance(one.event, RunQueued)}


def not_in(fork: Known, source: Known) -> Iterator[str]:
    """Yield what events of a fork name that the log had by then, and the fork has not."""
    for one in fork.events:
        if one.causation in source.ids - fork.ids:
            yield f"#{one.position} was caused by {one.causation}"
        if one.correlation in source.runs - fork.runs:
            yield f"#{one.position} is of the chain of {one.correlation}"
        # What a session was denied is no part of what it did.
        if not isinstance(one.event, AccessRecorded):
            for text in _told(one):
                if (
                    source.names.get(text, "") not in {"", *fork.names.values()}
                    or text in source.runs - fork.runs
                ):
                    yield f"#{one.position} names {text}"


def cut_short(fork: list[Recorded], source: list[Recorded]) -> Iterator[str]:
    """Yield the streams of a fork that are not what they were in the log."""
    ours, theirs = _by_stream(fork), _by_stream(source)
    yield from (stream for stream in ours.keys() - {"log"} if ours[stream] != theirs.get(stream))


def _by_stream(events: list[Recorded]) -> dict[str, list[Recorded]]:
    found: dict[str, list[Recorded]] = {}
    for one in events:
        found.setdefault(one.stream, []).append(one)
    return found


_TOLD: dict[str, frozenset[str]] = {}
"""The texts of events, by their hashes: a log has many forks."""


def _told(one: Recorded) -> frozenset[str]:
    if one.hash not in _TOLD:
        _TOLD[one.hash] = frozenset(_texts(msgspec.to_builtins(one.event)))
    return _TOLD[one.hash]


def _texts(value: Any) -> Iterator[str]:  # JSON
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list() | tuple():
            for inner in value:
                yield from _texts(inner)
        case _:
            pass
