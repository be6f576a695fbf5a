"""Replays a run, a whole log, or a recording in a file, and says whether all came out as it was recorded (SEAL)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypedDict

import msgspec

from intersession_actors.replaying.begun import MARGIN, Begins, begun_before
from intersession_actors.replaying.difference import Difference
from intersession_actors.replaying.recording import MANAGED, Recording
from intersession_actors.replaying.settings import RecordedSettings
from intersession_events.errors import CorruptEvent
from intersession_events.facts import (
    ConfigLoaded,
    DeliveryDecided,
    ForkEdited,
    LogOpened,
    decode,
    encode,
    ready,
)
from intersession_events.ids import delivery_stream, session_stream
from intersession_events.log import Log, Recorded
from intersession_events.machine import sealed
from intersession_projections.flows import Flows
from intersession_projections.places import Flow, flow_id, steps_of_flow
from intersession_projections.run_outcomes import Runs
from intersession_projections.timeline import Step

Progress = Callable[[int, int], None]
_FIRST_PAGE: Final = 32
_PAGE: Final = 250
"""So many events of a stream are read at a time: first few, and twice as many each time."""
# Most events of the stream are checkpoints: one by one they would be a long way.
_LOADED: Final = (
    "SELECT originator_version FROM stored_events WHERE originator_id='log' "
    "AND (topic LIKE 'config\\_loaded.%' ESCAPE '\\' OR topic LIKE 'fork\\_edited.%' ESCAPE '\\') ORDER BY originator_version"
)


_IMPORTED: Final = "SELECT 1 FROM stored_events WHERE originator_id='log' AND topic LIKE 'import\\_reported.%' ESCAPE '\\' LIMIT 1"


class Replayed(TypedDict):
    """What came of a sealed replay.

    `run` is None for a whole log. Of `events`, `decided` were decided anew and are the same, `given` were inputs that nothing
    decides (configurations, receipts, imports). `walked`: another system decided some of it, so that these were only walked
    (SEAL-4). `laterRules` say in words what is recorded today and was not then, `notJudged` which times nobody can judge.
    """

    run: str | None
    events: int
    decided: int
    given: int
    same: bool
    walked: bool
    laterRules: list[str]
    notJudged: list[str]
    firstDifference: Difference | None


@ready
class Kept(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first line of a recording in a file."""

    log_id: str
    run: str | None
    begins: int


@ready
class _Line(msgspec.Struct, frozen=True, kw_only=True):
    position: int
    stream: str
    version: int
    topic: str
    event: msgspec.Raw
    id: str
    time: int
    causation: str | None = None
    correlation: str | None = None
    stood: bool | None = None
    """Whether the log's time had not moved on since the event before, so that the clock may have been behind it; None was not written."""


class _Extent(NamedTuple):
    """What a run touches: its streams, from which position on its chain goes, and its own first and last."""

    streams: Sequence[str]
    since: int
    first: int
    last: int


class Recordings:
    """Takes recordings out of a log: of all of it, or of a run with all that it touches."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def whole(self) -> tuple[Recording, RecordedSettings]:
        """Return the whole log."""
        events = list(self._log.all())
        return Recording(self._log.log_id, events, begins=self._forked_at), RecordedSettings(events)

    def of(self, flow: Flow) -> tuple[Recording, RecordedSettings]:
        """Return the streams that a run touches, from its first event to its last; what came before has happened."""
        begins, events = self._touched(self._extent(flow), {})
        recording = Recording(self._log.log_id, events, begins=begins, stood=self._stood)
        return recording, RecordedSettings(self._configurations())

    def of_late(self, flow: Flow) -> tuple[Recording, RecordedSettings] | None:
        """Return the same, of long sessions only what came behind a snapshot; None where there is none that would do."""
        if self._log.query(_IMPORTED):
            return None  # which events were imported is told by all of them
        extent = self._extent(flow)
        found = {
            stream: begun
            for stream in extent.streams
            if stream.startswith("session:")
            and (begun := begun_before(self._log, stream, extent.since - MARGIN)) is not None
        }
        if not found:
            return None
        begins, events = self._touched(extent, found)
        recording = Recording(self._log.log_id, events, begins=begins, begun=found, stood=self._stood)
        return recording, RecordedSettings(self._configurations())

    def write(self, flow: Flow, file: Path) -> int:
        """Write the recording of a run to a new file, as lines of JSON; return how many events it has."""
        begins, touched = self._touched(self._extent(flow), {})
        events = sorted((*self._configurations(), *touched), key=lambda recorded: recorded.position)
        with file.open("xb") as lines:
            kept = Kept(log_id=self._log.log_id, run=flow_id(flow), begins=begins)
            lines.write(msgspec.json.encode(kept) + b"\n")
            before = {
                item.position + 1: item.time
                for item in self._log.at({max(recorded.position - 1, 1) for recorded in events})
            }
            for recorded in events:
                stood = before.get(recorded.position, -1) >= recorded.time
                lines.write(msgspec.json.encode(_line(recorded, stood=stood)) + b"\n")
        return len(events)

    def _stood(self, recorded: Recorded) -> bool:
        """Whether the log's time had not moved on since the event before."""
        before = self._log.all(after=max(recorded.position - 2, 0), to=recorded.position - 1)
        return any(item.time >= recorded.time for item in before)

    @property
    def _forked_at(self) -> int:
        """How far a fork was made, before anybody opened it: that was decided in the log that it is of, or by who made it.

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
        steps = steps_of_flow(self._log, flow)
        streams, since = self._streams_of(steps)
        return _Extent(tuple(streams), since, steps[0].position, steps[-1].position)

    def _touched(self, extent: _Extent, begun: Begins) -> tuple[int, list[Recorded]]:
        return max(extent.first - 1, self._forked_at), [
            recorded
            for stream in extent.streams
            for recorded in self._until(
                extent.last, stream, after=begun[stream].first - 1 if stream in begun else 0
            )
        ]

    def _until(self, last: int, stream: str, *, after: int) -> Iterator[Recorded]:
        """Yield the events of a stream up to a position: of what a long session did long after it only a page is read."""
        limit = _FIRST_PAGE
        while page := self._log.stream(stream, after=after, limit=limit):
            for recorded in page:
                if recorded.position > last:
                    return
                yield recorded
            after, limit = page[-1].version, min(2 * limit, _PAGE)

    def _streams_of(self, steps: Sequence[Step]) -> tuple[Iterable[str], int]:
        """Return the streams that steps touch, with those of their causal chains, and where the first of all these begins."""
        since = steps[0].position
        streams = dict.fromkeys(step.stream for step in steps if step.stream.startswith(MANAGED))
        roots = dict.fromkeys(
            recorded.correlation
            for recorded in self._log.at(step.position for step in steps)
            if recorded.correlation is not None
        )
        for root in roots:
            for accepted, stream in self._of_chain(root):
                streams[stream] = None
                since = min(since, accepted)
        for stream in [name for name in streams if name.startswith("delivery:")]:
            for recorded in self._log.stream(stream, to=1):
                if isinstance(recorded.event, DeliveryDecided):  # its session says whether it may go out
                    streams[session_stream(recorded.event.session_key)] = None
        return streams, since

    def _of_chain(self, root: str) -> Iterator[tuple[int, str]]:
        """Yield the streams of a causal chain, and from where on: what one branch of it may use depends on what the others did."""
        runs, flows = Runs(self._log), Flows(self._log)
        for run in runs.of_chain(root):
            outcome, flow = runs.get(run.run_id), flows.flow_of_run(run.run_id)
            if outcome is not None:
                yield outcome.accepted, session_stream(outcome.session_key)
            for row in flows.deliveries_of_run(run.run_id):
                yield row.accepted, delivery_stream(row.delivery_id)
            if flow is not None:
                yield self._log.stream(flow, to=1)[0].position, flow
                for row in flows.deliveries_of(flow):
                    yield row.accepted, delivery_stream(row.delivery_id)

    def _configurations(self) -> list[Recorded]:
        return [
            recorded
            for (version,) in self._log.query(_LOADED)
            for recorded in self._log.stream("log", after=version - 1, to=version)
            if isinstance(recorded.event, ConfigLoaded | ForkEdited)
        ]


def replay_run(log: Log, flow: Flow, progress: Progress | None = None) -> Replayed:
    """Replay a run of a log, or the exchange or spawn that it is of."""
    recordings = Recordings(log)
    if (late := recordings.of_late(flow)) is not None:
        found = _replayed(*late, flow_id(flow), progress)
        if found["same"]:
            return found
    # Whatever differs has to differ with all that came before it, too.
    return _replayed(*recordings.of(flow), flow_id(flow), progress)


def replay_all(log: Log, progress: Progress | None = None) -> Replayed:
    """Replay a whole log."""
    return _replayed(*Recordings(log).whole(), None, progress)


def replay_events(log_id: str, events: Sequence[Recorded]) -> Replayed:
    """Replay a whole log that is given as its events, in its order, and that is no fork."""
    return _replayed(Recording(log_id, events), RecordedSettings(events), None, None)


def replay_file(file: Path | str) -> Replayed:
    """Replay a recording that `intersession export-test` wrote.

    Raises:
        CorruptEvent: it is none, or was changed.
    """
    lines = Path(file).read_bytes().splitlines()
    try:
        kept = msgspec.json.decode(lines[0], type=Kept)
        read = [msgspec.json.decode(line, type=_Line) for line in lines[1:]]
        events = [_recorded(line) for line in read]
    except (IndexError, msgspec.MsgspecError) as error:
        raise CorruptEvent(f"{file}: it is no recording of a run: {error}") from error
    stood = {line.position for line in read if line.stood}
    unknown = any(line.stood is None for line in read)
    return _replayed(
        Recording(
            kept.log_id,
            events,
            begins=kept.begins,
            stood=None if unknown else lambda recorded: recorded.position in stood,
        ),
        RecordedSettings(events),
        kept.run,
        None,
    )


def _replayed(
    recording: Recording, settings: RecordedSettings, run: str | None, progress: Progress | None
) -> Replayed:
    events: Sequence[Recorded] = [
        recorded for recorded in recording.order if recorded.version > recording.version(recorded.stream)
    ]
    # With it comes the simulation, which nobody else of those who look at a log needs.
    from intersession_actors.replaying.replayer import Replayer  # noqa: PLC0415

    with sealed():
        outcome = Replayer(recording, settings).run(progress)
    return Replayed(
        run=run,
        events=len(events),
        decided=outcome.decided,
        given=outcome.given,
        same=outcome.difference is None,
        walked=any(map(recording.is_walked, events)),
        laterRules=[*outcome.later],
        notJudged=[*outcome.unjudged],
        firstDifference=outcome.difference,
    )


def _line(recorded: Recorded, *, stood: bool) -> _Line:
    return _Line(
        position=recorded.position,
        stream=recorded.stream,
        version=recorded.version,
        topic=recorded.topic,
        event=msgspec.Raw(encode(recorded.event)),
        id=recorded.id,
        time=recorded.time,
        causation=recorded.causation,
        correlation=recorded.correlation,
        stood=stood,
    )


def _recorded(line: _Line) -> Recorded:
    return Recorded(
        position=line.position,
        stream=line.stream,
        version=line.version,
        topic=line.topic,
        event=decode(line.topic, bytes(line.event)),
        id=line.id,
        time=line.time,
        causation=line.causation,
        correlation=line.correlation,
        epoch=0,
        prev="",
        digest="",
        hash="",
    )
