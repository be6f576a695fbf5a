"""Decides all of a recording again, and finds the first event that differs from its record."""

from collections.abc import Callable
from typing import Final, NamedTuple

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
from intersession_actors.hindsight.replaying.recording import MANAGED, Recording
from intersession_actors.hindsight.replaying.redeciding.deciding_again import (
    Redecided,
    is_as_recorded,
    redecided,
)
from intersession_actors.hindsight.replaying.redeciding.sources import Place, is_begun_with_another
from intersession_events import facts
from intersession_events.log.recorded import Draft, Recorded

Progress = Callable[[int, int], None]

_OF_GIVEN: Final = frozenset({"contextHash", "fit", "used"})
"""What of the start of a run is reckoned from all that its agent is given."""


class Outcome(NamedTuple):
    """The result of a replay: how many events were decided again, how many of these have erased texts, the first difference."""

    decided: int
    erased: int
    difference: Difference | None


class Judging:
    """Judges one recording, once."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._same: set[Place] = set()
        self._erased: set[Place] = set()
        self._first: Difference | None = None
        self._position = 1 << 62

    def judged(self, progress: Progress | None) -> Outcome:
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
        return Outcome(decided, len(self._erased), self._first)

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
        if not {field["path"] for field in fields_that_differ(recorded, draft)} <= _OF_GIVEN:
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
