"""Makes the query for a bundle of an answer: the answer, and where the events stand that its rows name (BUNDLE-7)."""

from collections.abc import Iterator
from typing import Final

from intersession_actors.hindsight.bundling.wanted import BundleWanted, Redact
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import At, View
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.plain_json import JsonMapping, JsonObject, is_list, is_object

_PLACES: Final = frozenset({"accepted", "position", "positions"})
"""The fields of answers that hold positions of events."""
_SUMS: Final = frozenset({"usage"})
"""Questions whose answers are sums over the whole log: all of it proves them."""
_OF_EVENTS: Final = frozenset({"checkpoint", "data", "decision", "filters"})
"""Fields with what an event says itself, whose numbers are its own; what a checkpoint reaches is the whole log."""


def wanted_for_answer(
    view: View, verb: str, arguments: JsonMapping, *, at: At | None = None, redact: Redact | None = None
) -> BundleWanted:
    """Ask, and return the query for a bundle that proves the answer.

    Raises:
        ToolRefused: the question is refused, or its answer names no events.
    """
    answer = Debugger(view).call(verb, arguments)
    return bundle_of(verb, arguments, answer, at=at, redact=redact)


def bundle_of(
    verb: str,
    arguments: JsonMapping,
    answer: JsonObject,
    *,
    at: At | None = None,
    redact: Redact | None = None,
) -> BundleWanted:
    """Return the query for a bundle that proves an answer to a question.

    Raises:
        ToolRefused: the answer names no events (`invalid_request`).
    """
    positions = sorted({*positions_in(answer)})
    if not positions and verb not in _SUMS:
        raise invalid(
            "answer",
            f"that of {verb} names no events, so that there is nothing to bundle; the whole log proves that there are none (`intersession bundle --all`)",
        )
    question: JsonObject = {"verb": verb, "arguments": dict(arguments)}
    return BundleWanted(
        positions=positions or None,
        everything=not positions,
        at=at,
        redact=redact,
        question=question if redact is None else {**question, "redact": redact},
        answer={**question, "answer": answer},
    )


def positions_in(value: object) -> Iterator[int]:
    """Yield the positions of events that an answer names, wherever they stand in it."""
    if is_object(value):
        for name, one in value.items():
            found = one if is_list(one) else [one]
            if name in _PLACES and all(type(each) is int for each in found):
                yield from (each for each in found if isinstance(each, int) and each > 0)
            elif name not in _OF_EVENTS:
                yield from positions_in(one)
    elif is_list(value):
        for one in value:
            yield from positions_in(one)
