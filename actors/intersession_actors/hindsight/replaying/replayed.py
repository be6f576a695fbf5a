"""Replays a run, a whole log, or a recording in a file, and reports whether everything came out as recorded (SEAL)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypedDict

import msgspec

from intersession_actors.hindsight.replaying.difference import Difference
from intersession_actors.hindsight.replaying.exported.recording_file import Line, RecordingHeader, recorded_in
from intersession_actors.hindsight.replaying.judging import Judging, Progress
from intersession_actors.hindsight.replaying.recording import Recording
from intersession_actors.hindsight.replaying.recordings import Recordings
from intersession_actors.hindsight.replaying.settings import RecordedSettings
from intersession_events import facts
from intersession_events.basics.errors import CorruptEvent
from intersession_events.basics.machine import read_at_most, sealed
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_projections.questions.places.runs_named import Flow, flow_id

MOST_BYTES: Final = 268_435_456
"""The most bytes read of a recording: no run is as long."""


class Replayed(TypedDict):
    """The result of a sealed replay.

    `run` is None for a whole log. Of `events`, `decided` were decided anew and are the same, `given` were inputs that nothing
    decides (configurations, receipts, imports). `walked`: another system decided some of it, so that these were only walked
    (SEAL-4). `notJudged` say in words what nobody can judge, with how often.
    """

    run: str | None
    events: int
    decided: int
    given: int
    same: bool
    walked: bool
    notJudged: list[str]
    firstDifference: Difference | None


def replay_run(log: Log, flow: Flow, progress: Progress | None = None) -> Replayed:
    """Replay a run of a log, or its exchange or spawn."""
    recordings = Recordings(log)
    if (late := recordings.of_late(flow)) is not None:
        found = _replayed(late, flow_id(flow), progress)
        if found["same"]:
            return found
    # Whatever differs has to differ with all that came before it, too.
    return _replayed(recordings.of(flow), flow_id(flow), progress)


def replay_all(log: Log, progress: Progress | None = None) -> Replayed:
    """Replay a whole log."""
    return _replayed(Recordings(log).whole(), None, progress)


def replay_events(log_id: str, events: Sequence[Recorded]) -> Replayed:
    """Replay a whole log that is given as its events, in its order, and that is not a fork."""
    return _replayed(Recording(log_id, events, RecordedSettings(events)), None, None)


def replay_file(file: Path | str) -> Replayed:
    """Replay a recording that `intersession export-test` wrote.

    Raises:
        CorruptEvent: it is not one, its lines are not those that its first line says, or
            the run that this names is not in it, or began before what is to be decided.
    """
    try:
        lines = read_at_most(Path(file), MOST_BYTES).splitlines()
        kept = msgspec.json.decode(lines[0], type=RecordingHeader)
        read = [msgspec.json.decode(line, type=Line) for line in lines[1:]]
        events = [recorded_in(line) for line in read]
    except IndexError:
        raise CorruptEvent(f"{file}: it is no recording of a run: it is empty") from None
    except (msgspec.MsgspecError, OSError, RecursionError) as error:
        raise CorruptEvent(f"{file}: it is no recording of a run: {error}") from error
    if (misfit := kept.misfit(lines)) is not None:
        raise CorruptEvent(f"{file}: it was changed after it was written: {misfit}; export the run again")
    recording = Recording(
        kept.log_id,
        events,
        RecordedSettings(events),
        begins=kept.begins,
        erased=frozenset((line.stream, line.version) for line in read if line.erased),
    )
    if kept.run is not None and (misfit := _misfit(recording, kept.run)) is not None:
        raise CorruptEvent(f"{file}: its first line says what can't be: {misfit}; export the run again")
    return _replayed(recording, kept.run, None)


def _misfit(recording: Recording, run: str) -> str | None:
    """Return in words why a recording is not that of the run that it says, to be decided from where it says; None: it is."""
    first = next((item for item in recording.order if _is_of(item, run)), None)
    if first is None:
        return f"it is of run {run}, and no event is of that"
    had_happened = first.position <= recording.begins
    # What a fork goes on from was recorded in another log, and had happened; of an import nothing was decided here.
    if had_happened and first.id == recording.derived_id(first) and not recording.has_imports():
        return f"all up to position {recording.begins} had happened before run {run}, which begins at {first.position}"
    return None


def _is_of(recorded: Recorded, run: str) -> bool:
    return run in {recorded.stream.partition(":")[2], facts.run_named(recorded.event)}


def _replayed(recording: Recording, run: str | None, progress: Progress | None) -> Replayed:
    events = recording.to_come()
    with sealed():
        outcome = Judging(recording).judged(progress)
    erased = f"erased text, and what was given of it to agents, in events of which all else is the same: {outcome.erased}"
    return Replayed(
        run=run,
        events=len(events),
        decided=outcome.decided,
        given=len(events) - outcome.decided,
        same=outcome.difference is None,
        walked=any(map(recording.is_walked, events)),
        notJudged=[erased] if outcome.erased else [],
        firstDifference=outcome.difference,
    )
