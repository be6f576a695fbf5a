"""What may stand in the place of erased payloads: read from the events that authorise it when an erased row is met."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from intersession_events.log.envelope import Erasing
from intersession_events.log.erasing import erased_stream, rows_erased
from intersession_events.log.recorded import Recorded

_REMEMBERED: Final = 256
"""Streams of which it is remembered what was erased in them."""


class Erasures:
    """An `Authorised`: reads the events that erased something in a stream, and remembers them. They are never withdrawn."""

    def __init__(self, read: Callable[[str], Iterable[Recorded]]) -> None:
        self._read = read
        self._known: OrderedDict[str, Mapping[int, Erasing]] = OrderedDict()

    def __call__(self, stream: str, version: int) -> Erasing | None:
        """Return what authorises that a payload is erased; None if nothing does.

        Raises:
            CorruptEvent: what would authorise it was changed.
        """
        known = self._known.get(stream)
        if known is None or version not in known:
            # Not known, or erased since.
            known = dict[int, Erasing]()
            for recorded in self._read(erased_stream(stream)):
                known.update(rows_erased(recorded.event, stream=recorded.stream, position=recorded.position))
            self._known[stream] = known
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return known.get(version)
