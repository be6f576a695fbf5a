"""What stands around the events that are explained: read once for a question, and together for the events that are known to be asked about."""

from collections.abc import Iterable, Sequence
from typing import Final

from intersession_events.facts import run_named
from intersession_events.log.log import Log
from intersession_events.log.recorded import Reads, Recorded, StreamPart
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.runs import Runs

_FLOWS: Final = ("exchange:", "spawn:")


class Around:
    """The runs that events name, the streams that they are of, and parts of those."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._runs: dict[str, RunOutcome | None] = {}
        self._streams: dict[str, Sequence[Recorded]] = {}
        self._parts: dict[StreamPart, Sequence[Recorded]] = {}

    def look(self, events: Iterable[Recorded]) -> None:
        """Read the runs and the flows of some events, in one round trip."""
        each = list(events)
        named = {run_id for one in each if (run_id := run_named(one.event)) is not None}
        streams = {one.stream for one in each if one.stream.startswith(_FLOWS)}
        self._read(sorted(named - self._runs.keys()), sorted(streams - self._streams.keys()))

    def run(self, run_id: str) -> RunOutcome | None:
        """Return what became of a run, but for what it said; None for an unknown one."""
        if run_id not in self._runs:
            self._read([run_id], [])
        return self._runs[run_id]

    def stream(self, stream: str) -> Sequence[Recorded]:
        """Return all events of a stream."""
        if stream not in self._streams:
            self._read([], [stream])
        return self._streams[stream]

    def part(self, stream: str, after: int, to: int) -> Sequence[Recorded]:
        """Return the events of a stream with `after < version <= to`."""
        part = StreamPart(stream, after, to)
        if part not in self._parts:
            (self._parts[part],) = self.log.parts([part])
        return self._parts[part]

    def _read(self, run_ids: Sequence[str], streams: Sequence[str]) -> None:
        if not run_ids and not streams:
            return
        ask = Runs(self.log).ask_without_words(run_ids)
        found = self.log.gather(Reads(questions=ask.questions, streams=streams))
        runs = ask.told([*found.rows])
        self._runs |= {run_id: runs.get(run_id) for run_id in run_ids}
        self._streams |= zip(streams, found.streams, strict=True)
