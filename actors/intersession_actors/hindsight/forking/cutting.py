"""Where a log can be cut: between two appends, since an append is one decision (FORK-4).

An append is not marked as such. What belongs to one is found by its causes and its kinds, as they are drafted (`streams/drafting.py`).
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final

from intersession_events import facts
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded

_NEAR: Final = 96
"""An append of a step is much shorter than this."""


def _asks(event: facts.Event) -> bool:
    """Whether it is an event of a flow that a session's message and run go with."""
    is_ready = isinstance(event, facts.AttachmentsReady | facts.ThreadOpened)
    return is_ready or facts.run_asked_in(event) is not None


def appended_with(log: Log, position: int) -> tuple[Recorded, ...]:
    """Return the event at a position with all events of its append, in order; nothing for position 0."""
    if position <= 0:
        return ()
    groups = _appended_near(log, position)
    return next((group for group in groups if any(one.position == position for one in group)), ())


def _appended_near(log: Log, position: int) -> list[tuple[Recorded, ...]]:
    """Return the events around a position, grouped by append, each in order."""
    window = list(log.all(after=max(position - _NEAR, 0), to=position + _NEAR))
    of: dict[int, int] = {recorded.position: recorded.position for recorded in window}

    def root(at: int) -> int:
        while of[at] != at:
            at = of[at]
        return at

    for near in _related(window):
        for one, other in combinations(near, 2):
            if _are_together(one, other) or _are_together(other, one):
                of[root(other.position)] = root(one.position)
    groups: dict[int, list[Recorded]] = {}
    for recorded in window:
        groups.setdefault(root(recorded.position), []).append(recorded)
    return [tuple(group) for group in groups.values()]


def _related(window: Sequence[Recorded]) -> Iterable[list[Recorded]]:
    """Return the events that name the same event, run or delivery: no others can be together."""
    by_name: dict[str, list[Recorded]] = {}
    for one in window:
        names = {one.id, one.causation}
        for part in facts.parts_of(one.event):
            names |= {facts.run_named(part), facts.delivery_named(part)}
        for name in names - {None}:
            by_name.setdefault(str(name), []).append(one)
    return by_name.values()


def _are_together(cause: Recorded, effect: Recorded) -> bool:
    """Whether two events are of one append, the second caused by the first."""
    first, second = cause.event, effect.event
    if isinstance(second, facts.ExchangeReleased) or (
        second.from_outside and effect.stream.startswith("exchange:")
    ):
        return False  # somebody outside said so, whatever was held before
    if isinstance(second, facts.RunStarted) or isinstance(first, facts.RunStarted):
        return False  # it begins what comes of it, and can be begun anew
    announced = [part for part in facts.parts_of(first) if isinstance(part, facts.AnnounceDecided)]
    asked = facts.run_asked_in(first)
    match first, second:
        case _, facts.DeliveryDecided(delivery_id=delivery_id) if announced:
            return announced[0].delivery_id == delivery_id
        case _, facts.RunQueued(run_id=run_id) if asked is not None:
            return asked.run_id == run_id
        case facts.RunCompleted(run_id=ended) | facts.RunFailed(run_id=ended), facts.DeliveryDecided(
            run_id=run_id, owner=None
        ):
            return ended == run_id
        case _, facts.RunQueued() | facts.MessageRecorded() if first.ends == "run":
            return False  # the run is over: what its session is asked next was asked by itself, whatever it names as its cause
        case _:
            pass
    if effect.causation != cause.id:
        return False
    if cause.stream == effect.stream:
        return effect.version == cause.version + 1 and not cause.stream.startswith("delivery:")
    return _asks(first) and effect.stream.startswith("session:")


def consistent(log: Log, position: int) -> int:
    """Return the nearest valid place for a cut, so that no step is half in the fork.

    A step that is decided from what is in the log is decided anew: the cut is before it. What somebody asked for from
    outside, and what an agent had answered, is not: the cut is behind it. A run may begin in the middle of an append.
    """
    cut, goes_back = position, False
    groups = _appended_near(log, position) if position > 0 else []
    while halved := next((one for one in groups if one[0].position <= cut < one[-1].position), None):
        goes_back = goes_back or (cut == position and not _is_kept(halved, position))
        cut = halved[0].position - 1 if goes_back else halved[-1].position
    return cut


def _is_kept(together: Sequence[Recorded], position: int) -> bool:
    return _is_given(together) or any(
        isinstance(one.event, facts.RunEnd) and one.position <= position for one in together
    )


def _is_given(together: Sequence[Recorded]) -> bool:
    """Whether a request from outside led to it: a send, a spawn, a person's message, an operator's command."""
    events = [one.event for one in together]
    if any(isinstance(event, facts.FlowAccepted) for event in events):
        return True
    if isinstance(events[0], facts.ExchangeReleased):
        return True
    if any(map(_asks, events)):
        return False
    return events[0].from_outside or any(isinstance(event, facts.RunQueued) for event in events)
