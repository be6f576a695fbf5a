"""The input of a replay: events in log order, where the replay begins, and facts about their log."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from intersession_actors.hindsight.replaying.redeciding.sources import Place, Sources
from intersession_actors.hindsight.replaying.settings import RecordedSettings
from intersession_actors.hindsight.replaying.snapshot_start import Begins
from intersession_actors.owners.exchange.exchange import fixed_by
from intersession_events import facts
from intersession_events.basics.errors import CorruptEvent
from intersession_events.basics.ids import event_id, is_event_id
from intersession_events.facts import encode
from intersession_events.log.recorded import Recorded

_POSITION: Final = attrgetter("position")

MANAGED: Final = ("session:", "exchange:", "spawn:", "delivery:")
"""Streams whose events actors decide. Those of others are inputs: configurations, receipts, what a channel told."""


class Recording:
    """Events in log order. Those up to `begins` count as given.

    Of a session that is in `begun` they are given from the first event on that is told there. `erased` are the places of those
    whose words were erased since; None: events say it.

    Raises:
        CorruptEvent: an event of a stream is not there or stands twice.
    """

    def __init__(
        self,
        log_id: str,
        events: Iterable[Recorded],
        settings: RecordedSettings,
        *,
        begins: int = 0,
        begun: Begins = MappingProxyType({}),
        erased: frozenset[Place] | None = None,
    ) -> None:
        self.log_id = log_id
        self.begins = begins
        self.order: list[Recorded] = sorted(events, key=_POSITION)
        self._imported: dict[str, int] = {}
        self._check({stream: one.first - 1 for stream, one in begun.items()})
        self.sources = Sources(
            log_id,
            self.order,
            begins=begins,
            begun=begun,
            erased=erased,
            accepted_as=(lambda accepted, at: fixed_by(settings.at(at), settings.edits, accepted))
            if settings.edits
            else None,
            frozen=self._silent(),
            settings=settings,
        )
        self._note_imports()

    def to_come(self) -> Sequence[Recorded]:
        """Return the events to be replayed, in log order."""
        return self.order[bisect_right(self.order, self.begins, key=_POSITION) :]

    def derived_id(self, recorded: Recorded) -> str:
        """Return the id that an event must have by its place, if it was decided here."""
        place = (self.log_id, recorded.stream, recorded.version, recorded.topic)
        return recorded.id if is_event_id(recorded.id, *place, encode(recorded.event)) else event_id(*place)

    def has_imports(self) -> bool:
        """Whether it has imported events."""
        return bool(self._imported)

    def is_imported(self, recorded: Recorded) -> bool:
        """Whether another system decided an event: it stands before the last imported one of its stream."""
        return recorded.version <= self._imported.get(recorded.stream, 0)

    def is_walked(self, recorded: Recorded) -> bool:
        """Whether another system decided an event, or the beginning of its flow, which a fork continues (SEAL-4)."""
        first = self.sources.streams[recorded.stream][0].event
        return self.is_imported(recorded) or (isinstance(first, facts.FlowAccepted) and first.inferred)

    def _check(self, before: dict[str, int]) -> None:
        """Find each event right behind the one before it, in its stream and in the whole order: all that is looked up rests on it."""
        versions = dict(before)
        for number, recorded in enumerate(self.order):
            version = versions.get(recorded.stream, 0) + 1
            is_ours = recorded.stream.startswith(MANAGED)
            # Of a stream that no actor owns, as that of configurations, a recording may have a part.
            if recorded.version != version if is_ours else recorded.version < version:
                raise CorruptEvent(
                    f"a recording has version {recorded.version} of {recorded.stream!r} at position {recorded.position}, "
                    f"where version {version} follows"
                )
            versions[recorded.stream] = recorded.version
            if number and recorded.position <= self.order[number - 1].position:
                other = self.order[number - 1]
                raise CorruptEvent(
                    f"a recording has two events at position {recorded.position}: "
                    f"version {other.version} of {other.stream!r} and version {recorded.version} of {recorded.stream!r}"
                )

    def _silent(self) -> frozenset[str]:
        """Return the runs that were open where the replay begins, and of which nothing comes: those of a fork are frozen (FORK-6)."""
        open_: set[str] = set()
        for recorded in self.order:
            run_id = facts.run_named(recorded.event) if recorded.stream.startswith("session:") else None
            if run_id is None:
                continue
            if recorded.position > self.begins or isinstance(recorded.event, facts.RunEnd):
                open_.discard(run_id)
            elif isinstance(recorded.event, facts.RunQueued):
                open_.add(run_id)
        return frozenset(open_)

    def _note_imports(self) -> None:
        for recorded in self.order:
            match recorded.event:
                case facts.MessageRecorded(source=str()) | facts.LineImported() | facts.SessionImported():
                    self._imported[recorded.stream] = recorded.version
                case facts.FlowAccepted(inferred=True):
                    self._imported[recorded.stream] = recorded.version
                case _:
                    pass
        for stream, imported in self._imported.items():
            self._imported[stream] = self._import_of(stream, imported)

    def _import_of(self, stream: str, version: int) -> int:
        """Return how far an import goes in a stream: its events have other ids than what actors decide, and no records."""
        for recorded in self.sources.streams[stream]:
            if recorded.version > version:
                if recorded.decision or recorded.id == self.derived_id(recorded):
                    break
                version = recorded.version
        return version
