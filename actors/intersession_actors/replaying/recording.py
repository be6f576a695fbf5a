"""What was recorded, as far as a replay has come: each stream has its own place, and no order holds between streams but causes."""

import re
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Final

from intersession_actors.replaying.begun import Begins
from intersession_events import facts
from intersession_events.facts import encode
from intersession_events.ids import event_id, session_stream
from intersession_events.log import Recorded

_ALL: Final = 1 << 62
_TRANSCRIPT: Final = re.compile(r"• transcript (\S*?([^/\s]+)\.jsonl)")

MANAGED: Final = ("session:", "exchange:", "spawn:", "delivery:")
"""Streams whose events actors decide. Those of others are inputs: configurations, receipts, what a channel told."""


class Recording:
    """Events in log order. Those up to `begins` have happened already.

    Of a session that is in `begun` they are given from the first event on that is told there.
    """

    def __init__(
        self,
        log_id: str,
        events: Iterable[Recorded],
        *,
        begins: int = 0,
        begun: Begins = MappingProxyType({}),
    ) -> None:
        self.log_id = log_id
        self.begins = begins
        self.begun: Final = begun
        self.order: list[Recorded] = sorted(events, key=lambda recorded: recorded.position)
        self._streams: dict[str, list[Recorded]] = {}
        self._messages: dict[str, dict[str, int]] = {}
        self._came: dict[str, int] = {}
        self.times: dict[str, int] = {}
        """When the last event of each stream happened that was come to."""
        self._imported: dict[str, int] = {}
        self._by_id = {recorded.id: recorded for recorded in self.order}
        self.transcripts: dict[str, str] = {}
        """Where the transcripts of children were mirrored, by session id, as far as an announce says so."""
        self.agents: set[str] = set()
        self.channels: set[str] = set()
        self.withheld: set[str] = set()
        """The channels that were sealed, as those of a fork are."""
        self.was_ruled = False
        """Whether a rule of the host's held a text."""
        for recorded in self.order:
            self._streams.setdefault(recorded.stream, []).append(recorded)
            self._look_at(recorded)
        for stream, version in self._imported.items():
            if version != _ALL:
                self._imported[stream] = self._import_of(stream, version)
        for recorded in self.order:
            if recorded.position <= begins:
                self.came_to(recorded)

    def _look_at(self, recorded: Recorded) -> None:  # noqa: C901 - one case an event
        match recorded.event:
            case facts.MessageRecorded(message=message):
                self._messages.setdefault(recorded.stream, {})[message.id] = recorded.version
                if recorded.event.source is not None:
                    self._imported[recorded.stream] = recorded.version
            case facts.AnnounceDecided(text=str() as text):
                self.transcripts.update((found[2], found[1]) for found in _TRANSCRIPT.finditer(text))
            case facts.LineImported() | facts.SessionImported():
                self._imported[recorded.stream] = recorded.version
            case facts.ExchangeAccepted(inferred=True) | facts.SpawnAccepted(inferred=True):
                self._imported[recorded.stream] = _ALL
            case facts.DeliveryWithheld(channel=channel):
                self.withheld.add(channel)
            case facts.ExchangeHeld(source="rule"):
                self.was_ruled = True
            case facts.RunStarted():
                self.agents.add(recorded.stream.partition(":")[2])
            case facts.DeliveryStarted():
                decided = self._streams[recorded.stream][0].event
                if isinstance(decided, facts.DeliveryDecided):
                    self.channels.add(decided.route.channel)
            case _:
                pass

    def order_so_far(self) -> list[Recorded]:
        """Return what has happened, in log order."""
        return [recorded for recorded in self.order if recorded.version <= self.version(recorded.stream)]

    def has(self, stream: str) -> bool:
        """Whether a stream is part of it."""
        return stream in self._streams

    def _import_of(self, stream: str, version: int) -> int:
        """Return how far an import goes in a stream: its events have other ids than what actors decide."""
        for recorded in self._streams[stream][version - self._before(stream) :]:
            derived = event_id(self.log_id, stream, recorded.version, recorded.topic, encode(recorded.event))
            if recorded.id == derived:
                break
            version = recorded.version
        return version

    def waited_ms(self, recorded: Recorded) -> int:
        """Return how long after its cause an event was recorded: so much earlier it can have been decided."""
        cause = self._by_id.get(recorded.causation or "")
        while cause is not None and cause.time == recorded.time:  # of the same append, as a rule
            cause = self._by_id.get(cause.causation or "")
        return 0 if cause is None else recorded.time - cause.time

    def is_imported(self, recorded: Recorded) -> bool:
        """Whether another system decided an event: it stands before the last one that was imported into its stream."""
        return recorded.version <= self._imported.get(recorded.stream, 0)

    def version(self, stream: str) -> int:
        """Return how far a stream has come."""
        return self._came.get(stream, 0)

    def came_to(self, recorded: Recorded) -> None:
        """Note that the next event of a stream has happened."""
        self._came[recorded.stream] = recorded.version
        self.times[recorded.stream] = recorded.time

    def past(self, stream: str) -> Sequence[Recorded]:
        """Return what has happened in a stream, as far back as it is given."""
        return self.happened(stream)

    def happened(self, stream: str, *, after: int = 0, to: int | None = None) -> Sequence[Recorded]:
        """Return what has happened in a stream, with `after < version <= to`."""
        before = self._before(stream)
        last = self.version(stream) if to is None else min(to, self.version(stream))
        return self._streams.get(stream, [])[max(after - before, 0) : max(last - before, 0)]

    def ahead(self, stream: str, further: int = 0) -> Recorded | None:
        """Return the next event of a stream, or the one so many further on."""
        events, at = self._streams.get(stream, []), self.version(stream) - self._before(stream) + further
        return events[at] if at < len(events) else None

    def at(self, stream: str, version: int) -> Recorded | None:
        """Return an event by its version."""
        events, at = self._streams.get(stream, []), version - self._before(stream)
        return events[at - 1] if 0 < at <= len(events) else None

    def _before(self, stream: str) -> int:
        """Return how many events of a stream are not given, the first ones."""
        begun = self.begun.get(stream)
        return 0 if begun is None else begun.first - 1

    def append_ahead(self, stream: str) -> list[Recorded]:
        """Return the events of a stream that follow, as far as one append may have made them: each causes the next."""
        found: list[Recorded] = []
        while (item := self.ahead(stream, len(found))) is not None:
            if found and (item.causation != found[-1].id or item.time != found[-1].time):
                break
            found.append(item)
        return found

    def message_version(self, key: str, message_id: str) -> int | None:
        """Return where a message stands in the stream of a session; None where it was never recorded."""
        return self._messages.get(session_stream(key), {}).get(message_id)

    def is_over(self, stream: str) -> bool:
        """Whether a stream was recorded to an end behind which nothing follows."""
        last = self._streams[stream][-1].event if self._streams.get(stream) else None
        match last:
            case (
                facts.ExchangeClosed()
                | facts.DeliveryDone()
                | facts.DeliveryUnknown()
                | facts.DeliveryDenied()
                | facts.DeliveryWithheld()
            ):
                return True
            case facts.DeliveryFailed():
                return last.retry_at_ms is None
            case _:
                return False
