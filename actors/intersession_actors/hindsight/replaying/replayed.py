"""Replays a run, a whole log, or a recording in a file: decides all of it again, and reports the first event that comes out otherwise (SEAL)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypedDict

import msgspec

from intersession_actors.hindsight.replaying.difference import (
    Difference,
    Field,
    changed,
    erased,
    extra,
    fields_that_differ,
    judged_otherwise,
    misplaced,
    missing,
    refused,
    undecided,
)
from intersession_actors.hindsight.replaying.exported.recording_file import Line, RecordingHeader, recorded_in
from intersession_actors.hindsight.replaying.recording import MANAGED, Recording
from intersession_actors.hindsight.replaying.recordings import Recordings
from intersession_actors.hindsight.replaying.redeciding.deciding_again import (
    Redecided,
    is_as_recorded,
    redecided,
)
from intersession_actors.hindsight.replaying.redeciding.sources import Place, is_begun_with_another
from intersession_actors.hindsight.replaying.settings import RecordedSettings
from intersession_events import facts
from intersession_events.basics.errors import CorruptEvent
from intersession_events.basics.machine import read_at_most, sealed
from intersession_events.basics.progress import Progress
from intersession_events.log.log import Log
from intersession_events.log.recorded import Draft, Recorded
from intersession_projections.questions.places.runs_named import Flow, flow_id

_OF_GIVEN: Final = frozenset({"contextHash", "covers", "fit", "used"})
"""What of the start of a run is reckoned from all that its agent is given."""

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
        outcome = _Judging(recording).judged(progress)
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


class _Outcome(NamedTuple):
    """The result of a replay: how many events were decided again, how many of these have erased texts, the first difference."""

    decided: int
    erased: int
    difference: Difference | None


class _Judging:
    """Judges one recording, once."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._same: set[Place] = set()
        self._erased: set[Place] = set()
        self._first: Difference | None = None
        self._position = 1 << 62

    def judged(self, progress: Progress | None) -> _Outcome:
        """Decide everything again. `progress` gets how many events are done, and how many there are."""
        recording, to_come = self._recording, self._recording.to_come()
        for stream in recording.sources.streams:
            for one in redecided(recording.sources, stream):
                self._judge(one)
            if progress is not None:
                progress(min(len(self._same), len(to_come)), len(to_come))
        for recorded in to_come:
            if recorded.position < self._position and not self._is_accounted_for(recorded):
                self._differs(missing(recorded))
                break
        if progress is not None and self._first is None:
            progress(len(to_come), len(to_come))
        begins = recording.begins
        decided = sum((one.stream, one.version) in self._same for one in to_come if one.position > begins)
        return _Outcome(decided, len(self._erased), self._first)

    def _is_accounted_for(self, recorded: Recorded) -> bool:
        """Whether an event was decided again, or needs no decision."""
        if not recorded.stream.startswith(MANAGED) or (recorded.stream, recorded.version) in self._same:
            return True
        is_at_door = isinstance(recorded.event, facts.DeliveryDecided) and not is_begun_with_another(recorded)
        return is_at_door or self._recording.is_imported(recorded)

    def _judge(self, one: Redecided) -> None:
        if one.kind == "missing" and self._recording.is_imported(one.append[-1]):
            return
        if one.problem is not None and one.kind != "erased":
            self._differs(_undecided(one))
            return
        for recorded, draft in one.pairs:
            if recorded is not None and draft is not None and self._agree(recorded, draft):
                self._same.add((recorded.stream, recorded.version))
                continue
            differs = self._difference(one, recorded, draft)
            self._differs(erased(differs) if one.kind == "erased" else differs)
            return

    def _agree(self, recorded: Recorded, draft: Draft) -> bool:
        place = recorded.stream, recorded.version
        if self._recording.sources.is_erased(recorded):
            self._erased.add(place)
        if is_as_recorded(recorded, draft):
            return not misplaced(recorded)
        if not isinstance(recorded.event, facts.RunStarted) or not self._recording.sources.has_erased(
            (recorded,)
        ):
            return False
        if (
            not {field["path"].partition(".")[0] for field in fields_that_differ(recorded, draft)}
            <= _OF_GIVEN
        ):
            return False
        self._erased.add(place)  # its agent was given what is erased now
        return True

    def _difference(self, one: Redecided, recorded: Recorded | None, draft: Draft | None) -> Difference:
        if recorded is None:
            last = one.append[-1]
            if draft is None:
                raise ValueError("there is nothing to compare")
            return extra(last.stream, last.version + 1, draft, one.asked)
        if draft is None:
            return missing(recorded)
        fields = [*fields_that_differ(recorded, draft), *misplaced(recorded)]
        derived = self._recording.derived_id(recorded)
        if not self._recording.sources.is_erased(recorded) and recorded.id != derived:
            fields.append(Field(path="id", recorded=recorded.id, now=derived))
        return changed(recorded, draft, fields, one.asked)

    def _differs(self, difference: Difference) -> None:
        position = difference["position"] or (1 << 62) - 1
        if position < self._position:
            self._first, self._position = difference, position


def _undecided(one: Redecided) -> Difference:
    if one.judged is not None:
        return judged_otherwise(one.append[0], *one.judged, one.problem or "")
    if one.refused is not None:
        return refused(one.append[0], one.refused.code, one.refused.error)
    return undecided(one.append[0], one.kind or "missing", one.problem or "", one.asked)
