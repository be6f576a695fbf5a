"""Takes recordings out of a log: of all of it, or of a run with all that it touches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from intersession_actors.hindsight.replaying.exported.recording_file import RecordingHeader, line_of, lines_of
from intersession_actors.hindsight.replaying.recording import MANAGED, Recording
from intersession_actors.hindsight.replaying.redeciding.sources import Place, erased_by
from intersession_actors.hindsight.replaying.settings import RecordedSettings
from intersession_actors.hindsight.replaying.snapshot_start import (
    MARGIN,
    SnapshotStart,
    VersionRange,
    read_until,
    snapshot_start_before,
)
from intersession_events.basics.ids import delivery_stream, session_stream
from intersession_events.basics.machine import private_file
from intersession_events.facts import ConfigLoaded, DeliveryDecided, ExchangeAccepted, ForkEdited, LogOpened
from intersession_events.log.erasing import erased_stream
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, StreamPart
from intersession_events.stores.opened import check_clear
from intersession_projections.questions.places.located import read_flow
from intersession_projections.questions.places.runs_named import Flow, flow_id
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.run_outcomes.runs import Runs

# Most events of the stream are checkpoints: one by one they would be a long way.
_OF_LOG: Final = (
    "SELECT originator_version, topic LIKE 'import\\_reported.%' ESCAPE '\\' FROM stored_events WHERE originator_id='log' "
    "AND (topic LIKE 'config\\_loaded.%' ESCAPE '\\' OR topic LIKE 'fork\\_edited.%' ESCAPE '\\' "
    "OR topic LIKE 'import\\_reported.%' ESCAPE '\\') ORDER BY originator_version"
)


class _Extent(NamedTuple):
    """What a run touches.

    Its streams, from which position on its chain goes, and its own first and last; its own events of each session, and those
    of its other streams, which are whole.
    """

    streams: Sequence[str]
    since: int
    first: int
    last: int
    own: Mapping[str, VersionRange]
    whole: Mapping[str, Sequence[Recorded]]


class Recordings:
    """Takes recordings out of a log: of all of it, or of a run with all that it touches."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._extents: dict[str, _Extent] = {}

    def whole(self) -> Recording:
        """Return the whole log."""
        events = list(self._log.all())
        return Recording(self._log.log_id, events, RecordedSettings(events), begins=self._forked_at)

    def _erased(self, streams: Iterable[str]) -> frozenset[Place]:
        """Return the places whose words were erased in some streams."""
        return erased_by(item for stream in streams for item in self._log.stream(erased_stream(stream)))

    def of(self, flow: Flow) -> Recording:
        """Return the streams that a run touches, from its first event to its last; earlier events count as given."""
        extent = self._extent(flow)
        return Recording(
            self._log.log_id,
            self._touched(extent),
            RecordedSettings(self._configurations()),
            begins=self._begins(extent),
            erased=self._erased(extent.streams),
        )

    def of_late(self, flow: Flow) -> Recording | None:
        """Return the same, with only the part of long sessions after a snapshot; None without a suitable snapshot."""
        of_log = self._log.query(_OF_LOG)
        if any(is_import for _, is_import in of_log):
            return None  # which events were imported is told by all of them
        extent = self._extent(flow)
        begins = self._begins(extent)
        begun: dict[str, SnapshotStart] = {}
        late: dict[str, Sequence[Recorded]] = {}
        for stream in extent.streams:
            if stream.startswith("session:"):
                own = extent.own.get(stream)
                found = snapshot_start_before(
                    self._log,
                    stream,
                    extent.since - MARGIN,
                    begins=begins,
                    last=extent.last,
                    own=own,
                )
                if found is not None:
                    begun[stream], late[stream] = found
        if not begun:
            return None
        return Recording(
            self._log.log_id,
            self._touched(extent, late),
            RecordedSettings(self._configured(version for version, _ in of_log)),
            begins=begins,
            begun=begun,
            erased=self._erased(extent.streams),
        )

    def write(self, flow: Flow, file: Path) -> int:
        """Write a run's recording to a new file, as lines of JSON; return the number of events.

        Raises:
            BadKey: the log is kept encrypted, and its keys are not at hand.
        """
        check_clear(self._log)
        extent = self._extent(flow)
        begins, touched = self._begins(extent), self._touched(extent)
        events = sorted((*self._configurations(), *touched), key=lambda recorded: recorded.position)
        kept = RecordingHeader(log_id=self._log.log_id, run=flow_id(flow), begins=begins)
        gone = self._erased(extent.streams)
        lines = [line_of(recorded, erased=(recorded.stream, recorded.version) in gone) for recorded in events]
        with private_file(file, new=True) as written:
            for line in lines_of(kept, lines):
                written.write(line + b"\n")
        return len(events)

    @property
    def _forked_at(self) -> int:
        """Return how far a fork was made before it was opened: the source log, or its maker, decided that.

        The latter are what edits say, and of an import the run that is added (FORK-10).
        """
        forked = self._log.forked
        if forked is None:
            return 0
        made = forked.position
        for recorded in self._log.all(after=made):
            if isinstance(recorded.event, LogOpened):
                break
            made = recorded.position
        return made

    def _extent(self, flow: Flow) -> _Extent:
        if (name := flow_id(flow)) not in self._extents:
            self._extents[name] = self._read_extent(flow)
        return self._extents[name]

    def _read_extent(self, flow: Flow) -> _Extent:
        events = read_flow(self._log, flow).events
        own: dict[str, list[int]] = {}
        whole: dict[str, list[Recorded]] = {}
        for recorded in events:
            if recorded.stream.startswith("session:"):
                own.setdefault(recorded.stream, []).append(recorded.version)
            elif recorded.stream.startswith(MANAGED):
                whole.setdefault(recorded.stream, []).append(recorded)
        chain, since = self._streams_of(events)
        return _Extent(
            tuple(dict.fromkeys((*whole, *own, *chain))),
            since,
            events[0].position,
            events[-1].position,
            {stream: VersionRange(versions[0], versions[-1]) for stream, versions in own.items()},
            whole,
        )

    def _begins(self, extent: _Extent) -> int:
        """Return up to where all has happened."""
        return max(extent.first - 1, self._forked_at)

    def _touched(
        self, extent: _Extent, late: Mapping[str, Sequence[Recorded]] | None = None
    ) -> list[Recorded]:
        """Return the events of a run; `late` are those of some streams."""
        known = {**extent.whole, **(late or {})}
        found: list[Recorded] = []
        for stream in extent.streams:
            if stream in known:
                found += known[stream]
            else:
                own = extent.own.get(stream)
                found += read_until(self._log, stream, extent.last, after=0, own=own)
        return found

    def _streams_of(self, events: Iterable[Recorded]) -> tuple[Iterable[str], int]:
        """Return the streams of the causal chains of events, and where the first of all these begins."""
        since = min(recorded.position for recorded in events)
        streams: dict[str, None] = {}
        for root in {recorded.correlation for recorded in events if recorded.correlation is not None}:
            for accepted, stream in self._of_chain(root):
                streams[stream] = None
                since = min(since, accepted)
        for recorded in events:
            if isinstance(recorded.event, ExchangeAccepted) and recorded.event.requester is not None:
                # Whether it was gone by then is told by its own stream; who called outside of a run has none in the chain.
                streams[session_stream(recorded.event.requester)] = None
        deliveries = {recorded.stream for recorded in events} | streams.keys()
        for begun in self._log.parts(
            [StreamPart(name, 0, 1) for name in deliveries if name.startswith("delivery:")]
        ):
            for recorded in begun:
                if isinstance(recorded.event, DeliveryDecided):  # its session says whether it may go out
                    streams[session_stream(recorded.event.session_key)] = None
        return streams, since

    def _of_chain(self, root: str) -> Iterator[tuple[int, str]]:
        """Yield the streams of a causal chain, and from where on: the budget of one branch depends on the others."""
        runs, flows = Runs(self._log), Flows(self._log)
        outcomes = runs.many_without_words(run.run_id for run in runs.of_chain(root))
        for outcome in outcomes.values():
            yield outcome.accepted, session_stream(outcome.session_key)
        of_runs = dict.fromkeys(flows.flows_of_runs(outcomes).values())
        for begun in self._log.parts([StreamPart(flow, 0, 1) for flow in of_runs]):
            yield begun[0].position, begun[0].stream
        for row in flows.deliveries_of_all(of_runs, outcomes):
            yield row.accepted, delivery_stream(row.delivery_id)

    def _configurations(self) -> list[Recorded]:
        return self._configured(version for version, _ in self._log.query(_OF_LOG))

    def _configured(self, versions: Iterable[int]) -> list[Recorded]:
        parts = [StreamPart("log", version - 1, version) for version in versions]
        return [
            recorded
            for part in self._log.parts(parts)
            for recorded in part
            if isinstance(recorded.event, ConfigLoaded | ForkEdited)
        ]
