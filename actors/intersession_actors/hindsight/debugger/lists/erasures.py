"""The verb `erasures`: what was erased from the log, by whom and why, and the checkpoint that covers it (ANS-13)."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import msgspec

from intersession_actors.hindsight.debugger.lists.paging import (
    LimitArgument,
    Listed,
    PageAnswer,
    most_of,
    paged,
)
from intersession_actors.hindsight.debugger.search import InSpan, span_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import KeyText
from intersession_events.basics.ids import SESSIONS, session_stream
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import CheckpointPublished, CheckpointTaken, Erased, ready, topics_of
from intersession_events.log.erasing import erased_stream
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.proofs.statement import STREAM
from intersession_projections.basics.row_prefilter import prefiltered
from intersession_projections.basics.spans import backwards

_ERASED: Final = topics_of(Erased)


@ready
class ErasuresOf(InSpan, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of `erasures`; null counts as missing."""

    session: Annotated[
        KeyText | None, msgspec.Meta(description="Only what was erased in this session's own stream.")
    ] = None
    limit: LimitArgument = None


class ErasuresAnswer(PageAnswer):
    """Erasures, newest first: `{position, timeMs, stream, sessionKey?, payloads, files?, by, reason?, rule?, first?, notReached?, checkpoint?}`.

    `rule` is `person`, or a rule of retention. Of one call the first has `notReached`, and the others its event's id, as `first`.
    `checkpoint` is the first that covers the erasure, as far as the log says: `{at, position, keyId?, publishedTo?}`. `verify`
    proves it.
    """

    erasures: list[JsonObject]


def list_erasures(view: View, given: ErasuresOf) -> ErasuresAnswer:
    """Return the erasures. They tell of all sessions, so only the operator may ask.

    Raises:
        ToolRefused: a name, a place or the cursor is invalid.
    """
    rows, cursor = erasures_found(view, given, most_of(given.limit))
    return {"count": len(rows), "erasures": rows, "cursor": cursor}


def erasures_found(view: View, given: ErasuresOf, most: int) -> Listed[JsonObject]:
    """Return the same, as rows up to a limit.

    Raises:
        ToolRefused: as `list_erasures`.
    """
    found = paged(_erasures(view, given), lambda one: one.position, most)
    covers = _Covers(view.log) if found.rows else None
    return Listed([_value(one, covers) for one in found.rows], found.cursor)


def _erasures(view: View, given: ErasuresOf) -> Iterator[Recorded]:
    span = span_of(view, given)
    if given.session is None:
        return prefiltered(view.log, span, lambda row: row[3] in _ERASED)
    stream = session_stream(view.session(given.session, field="session"))
    return backwards(view.log, span, erased_stream(stream))


def _value(recorded: Recorded, covers: "_Covers | None") -> JsonObject:
    event = recorded.event
    if not isinstance(event, Erased):
        raise TypeError(f"{recorded.topic} erases nothing")
    return present(
        {
            "position": recorded.position,
            "timeMs": recorded.time,
            "stream": event.stream,
            "sessionKey": event.stream.removeprefix(SESSIONS) if event.stream.startswith(SESSIONS) else None,
            "payloads": len(event.rows),
            "files": event.files or None,
            "by": event.by,
            "reason": event.reason or None,
            "rule": event.rule or None,
            "first": recorded.causation,
            "notReached": [*event.not_reached] or None,
            "checkpoint": None if covers is None else covers.over(recorded.position),
        }
    )


class _Covers:
    """The checkpoints of a log, in their order, and where each was published."""

    def __init__(self, log: Log) -> None:
        self._taken: list[tuple[int, int, CheckpointTaken]] = []
        self._published: dict[str, int] = {}
        for recorded in log.stream(STREAM):
            match recorded.event:
                case CheckpointTaken() as taken:
                    self._taken.append((taken.position, recorded.position, taken))
                case CheckpointPublished(position=position, to=to):
                    self._published[to] = max(position, self._published.get(to, 0))
                case _:
                    pass
        self._places: Sequence[int] = [position for position, _, _ in self._taken]

    def over(self, position: int) -> JsonObject | None:
        """Return the first checkpoint that covers a position; None if none does."""
        at = bisect_left(self._places, position)
        if at == len(self._taken):
            return None
        reached, taken_at, taken = self._taken[at]
        return present(
            {
                "at": taken_at,
                "position": reached,
                "keyId": taken.key_id,
                "publishedTo": sorted(to for to, up_to in self._published.items() if up_to >= reached)
                or None,
            }
        )
