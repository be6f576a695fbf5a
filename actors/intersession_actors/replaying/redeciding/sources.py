"""What decision records refer to: events of a log, found by their ids, and what they say of how a run or a delivery ended."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from intersession_actors.delivery import ended_in
from intersession_actors.session import ended_again
from intersession_actors.streams import DeliveryEnded, RunEnded, texts_in
from intersession_events import facts
from intersession_events.log import Lineage, Recorded


class Sources:
    """The events of a log, in their order.

    Of a fork `lineage` says in which log each event was written, and `accepted_as` with which settings an exchange goes on there.
    """

    def __init__(
        self,
        log_id: str,
        events: Iterable[Recorded],
        *,
        lineage: Lineage | None = None,
        accepted_as: Callable[[facts.ExchangeAccepted], facts.ExchangeAccepted] | None = None,
    ) -> None:
        self._lineage = lineage or Lineage(log_id)
        self._accepted_as = accepted_as
        self._by_id: dict[str, Recorded] = {}
        self._streams: dict[str, list[Recorded]] = {}
        for event in events:
            self._by_id[event.id] = event
            self._streams.setdefault(event.stream, []).append(event)

    @property
    def streams(self) -> Mapping[str, Sequence[Recorded]]:
        """The events of each stream."""
        return self._streams

    def log_id_of(self, first: Recorded) -> str:
        """Return the id of the log in which an append was decided."""
        return self._lineage.log_id_at(first.position)

    def accepted_as(self, accepted: facts.ExchangeAccepted, first: Recorded) -> facts.ExchangeAccepted:
        """Return what an exchange was accepted with, as it held when an append was decided (FORK-4)."""
        forked = self._lineage.forked
        if self._accepted_as is None or forked is None or first.position <= forked.position:
            return accepted
        return self._accepted_as(accepted)

    def run_ended(self, first: Recorded) -> RunEnded | None:
        """Return what a flow was told of the end of the run that an append was caused by; None if that is not here."""
        end = self._cause(first)
        if end is None or not isinstance(end.event, facts.RunEnd):
            return None
        stream = self._streams[end.stream]
        before = [item for item in stream if item.version <= end.version]
        begun = _begun(before, end.event.run_id)
        return None if begun is None else ended_again(first.stream, before[begun:])

    def delivery_ended(self, first: Recorded) -> DeliveryEnded | None:
        """Return what a flow was told of the end of the delivery that an append was caused by; None if that is not here."""
        end = self._cause(first)
        if end is None or not isinstance(end.event, facts.DeliveryEvent):
            return None
        return ended_in(item for item in self._streams[end.stream] if item.version <= end.version)

    def _cause(self, first: Recorded) -> Recorded | None:
        return None if first.causation is None else self._by_id.get(first.causation)


def _begun(stream: Sequence[Recorded], run_id: str) -> int | None:
    for number, item in enumerate(stream):
        if isinstance(item.event, facts.RunQueued) and item.event.run_id == run_id:
            return number
    return None


_LEFT: Final = frozenset({facts.ERASED, f'"{facts.ERASED}"'})
"""What stands in the place of words, and of a receipt, which is JSON."""


def are_erased(append: Sequence[Recorded], command: object) -> bool:
    """Whether words were erased of what came in, or of what an append holds."""
    match command:
        case RunEnded():
            came_in: tuple[str | None, ...] = (command.text, command.error, command.last_tool_result)
        case DeliveryEnded():
            came_in = (command.note,)
        case _:
            came_in = ()
    return not _LEFT.isdisjoint((*texts_in(append), *came_in))
