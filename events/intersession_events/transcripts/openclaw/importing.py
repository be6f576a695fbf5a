"""Imports an OpenClaw state directory into a log: sessions, messages, exchanges, spawns, and a report (IMP-1 to IMP-4).

What an auditor may rely on:

* *Nothing is lost.* Every line is in the log verbatim, or has a line in the report that says why it is not. Every entry
  is kept verbatim too. The report itself is in the log, in the stream `import:<id>`.
* *Nothing is mixed.* A key that the log has already, from somewhere else or because its session went on here after an
  earlier import, is left alone: the imported session is kept beside it as `agent:<agent>:imported-<sessionId>`, with
  the original key in `SessionOpened.original_key` and a line in the report. `on_taken="refuse"` refuses instead.
* *Nothing is doubled.* An event's id is derived from what it is (agent, transcript, entry), not from where the
  directory lies or when it was imported. Importing again appends nothing; a state that has grown appends what is new.
  An exchange or spawn that an earlier import closed stays as it was then inferred, and the report names it. So do lines
  that were changed in the state.
* *Nothing comes back.* What was erased here stays so. A session with erased lines that went on here, and elsewhere in the
  state, gets nothing more, and no session beside it; the report names it.
* *Nothing is taken from whoever is at work.* A session that is written to meanwhile is looked at anew, and judged as above.
  A flow that was begun by then under a key that its session no longer gets is finished as it was begun.
* *Nothing is made up.* Messages are as they were, provenance too. Exchanges and spawns are inferred, marked so, and
  name the lines they are inferred from. Imported runs are no runs of ours: no `RunQueued` is written, and every flow is
  closed, so that nothing of it is ever taken up again.
* *Time is the source's.* All files are merged by time, ties by path and line, and appended in that order.

A whole state is held in memory, about three times its size, while it is planned.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from intersession_events.basics import ids
from intersession_events.basics.errors import AppendConflict, ImportFailed
from intersession_events.basics.progress import Progress
from intersession_events.facts import FlowAccepted, ImportReported, LineImported, MessageRecorded
from intersession_events.log.log import HostLog
from intersession_events.log.recorded import Draft, StreamAppend
from intersession_events.transcripts.openclaw import appending
from intersession_events.transcripts.openclaw.plan import ImportPlan, plan_survey
from intersession_events.transcripts.openclaw.reading.files import read_state
from intersession_events.transcripts.openclaw.reading.state import OpenClawState
from intersession_events.transcripts.openclaw.reconstruction.drafts import Planned
from intersession_events.transcripts.openclaw.reconstruction.sessions import Survey, survey
from intersession_events.transcripts.openclaw.report import ImportReport, Note

OnTaken = Literal["beside", "refuse"]

_TRIES: Final = 8


def import_openclaw(
    directory: Path,
    log: HostLog,
    *,
    clock: Callable[[], int],
    progress: Progress | None = None,
    on_taken: OnTaken = "beside",
    appended: appending.Appended | None = None,
) -> ImportReport:
    """Import the parts of a state directory that the log does not have yet.

    `clock` gives the time of the import in milliseconds, for the report alone. `progress` is told (events appended,
    events to append) after each batch, `appended` the streams of the batch. What was appended before an error stays;
    importing again goes on from there.

    Raises:
        ImportFailed: the directory is no OpenClaw state, or, with `on_taken="refuse"`, has keys the log has.
        AppendConflict: somebody else wrote to imported sessions again and again meanwhile.
        StoreUnavailable: the store could not take it.
    """
    return import_state(
        read_state(directory), log, clock=clock, progress=progress, on_taken=on_taken, appended=appended
    )


def import_state(
    state: OpenClawState,
    log: HostLog,
    *,
    clock: Callable[[], int],
    progress: Progress | None = None,
    on_taken: OnTaken = "beside",
    appended: appending.Appended | None = None,
) -> ImportReport:
    """Import a state that was read already, of whatever system, as `import_openclaw` does.

    Raises:
        ImportFailed: with `on_taken="refuse"`, it has keys the log has.
        AppendConflict: as above.
        StoreUnavailable: as above.
    """
    importing = _Import(survey(state), log, clock=clock, on_taken=on_taken, progress=progress, told=appended)
    for _ in range(_TRIES - 1):
        try:
            return importing.once()
        except AppendConflict:
            continue  # somebody else was faster: what their session is now decides
    return importing.once()


@dataclass
class _Import:
    """One import, in one attempt or several. Each looks at the log again, and adds what is missing."""

    found: Survey
    log: HostLog
    clock: Callable[[], int]
    on_taken: OnTaken
    progress: Progress | None
    told: appending.Appended | None
    appended: int = 0

    def once(self) -> ImportReport:
        found, log = self.found, self.log
        known = appending.KnownStreams(log)
        taken = _foreign(found, known)
        planned = plan_survey(found, log_id=log.log_id, taken=taken)
        notes: list[Note] = []
        parted = _parted(found, planned, known)
        if (taken or parted) and self.on_taken == "refuse":
            keys = ", ".join(sorted(taken | parted))
            raise ImportFailed(f"the log has other sessions of these keys already: {keys}")
        left = {key for key in parted if known.of(ids.session_stream(key)).erased}
        parted -= left
        if parted:
            before, planned = planned, plan_survey(found, log_id=log.log_id, taken=taken | parted)
            left_open = appending.begun(before, planned, known)
            self._append(left_open)
            what = "was begun by an import that was cut off; finished as it was begun"
            notes += [Note(subject=stream, what=what) for stream in left_open.versions]
        what = "went on here, and lines of it were erased: it gets nothing more of the state, which still has their words"
        notes += [Note(subject=key, what=what) for key in sorted(left)]
        planned = msgspec.structs.replace(planned, planned=_without(planned, left))
        new = appending.fresh(planned, known)
        self._append(new)
        what = "goes on in the state; left as an earlier import had closed it"
        notes += [Note(subject=stream, what=what) for stream in new.left]
        what = "are of a branch that was given up since they were imported; they stay what was said"
        notes += [
            Note(subject=stream, what=f"{count} messages {what}")
            for stream, count in _given_up(planned, known).items()
        ]
        changed = [item for item in planned.planned if known.of(item.stream).has_changed(item)]
        what = "lines or entries have other words in the state than they were imported with, which stay"
        notes += [
            Note(subject=stream, what=f"{count} {what}")
            for stream, count in Counter(item.stream for item in changed).items()
        ]
        import_id = planned.import_id
        if changed:
            parts = (import_id, "changed", *(item.draft.id for item in changed))
            import_id = ids.derive(log.log_id, "import", *parts)
        reported = log.stream(_report_stream(import_id), limit=1)
        report = msgspec.structs.replace(
            planned.report,
            import_id=import_id,
            appended=self.appended,
            already_imported=self.appended == 0 and bool(reported),
            notes=(*planned.report.notes, *notes),
        )
        if not reported:
            _record(report, log, self.clock())
        return report

    def _append(self, new: appending.Fresh) -> None:
        before = self.appended

        def progress(done: int, of: int) -> None:
            self.appended = before + done
            if self.progress is not None:
                self.progress(before + done, before + of)

        appending.append_fresh(self.log, new, progress, self.told)


def _foreign(found: Survey, known: appending.KnownStreams) -> set[str]:
    """Return the keys whose sessions in the log no import of this state made."""
    foreign: set[str] = set()
    for session in found.sessions:
        here = known.of(ids.session_stream(str(session.key)))
        ours = {generation.session_id for generation in session.generations}
        if here.version and not ours & here.generations:
            foreign.add(str(session.key))
    return foreign


def _parted(found: Survey, planned: ImportPlan, known: appending.KnownStreams) -> set[str]:
    """Return the keys of imported sessions that went on here, and elsewhere in the state: two histories by now."""
    lines: dict[str, set[str]] = {}
    for item in planned.planned:
        if isinstance(item.draft.event, MessageRecorded | LineImported):
            lines.setdefault(item.stream, set()).add(item.draft.id)
    parted: set[str] = set()
    for session in found.sessions:
        stream = ids.session_stream(str(session.key))
        here = known.of(stream)
        if here.goes_on and lines.get(stream, set()) - here.events:
            parted.add(str(session.key))
    return parted


def _without(planned: ImportPlan, keys: Collection[str]) -> tuple[Planned, ...]:
    """Return the events of a plan without those of sessions, and of the flows that they have part in."""
    left = {ids.session_stream(key) for key in keys}
    for item in planned.planned if keys else ():
        event = item.draft.event
        if isinstance(event, FlowAccepted) and not {event.requester, event.asked}.isdisjoint(keys):
            left.add(item.stream)
    return tuple(item for item in planned.planned if item.stream not in left)


def _given_up(planned: ImportPlan, known: appending.KnownStreams) -> Counter[str]:
    """Return how many messages of each stream an earlier import took for said, and the state has in no branch that goes on."""
    found: Counter[str] = Counter()
    for item in planned.planned:
        is_line = isinstance(item.draft.event, LineImported)
        if is_line and item.draft.id in known.of(item.stream).said:
            found[item.stream] += 1
    return found


def _record(report: ImportReport, log: HostLog, time: int) -> None:
    event = ImportReported(
        import_id=report.import_id,
        source=report.source,
        sessions=report.sessions,
        messages=report.messages,
        inter_session=report.inter_session,
        exchanges=report.exchanges,
        spawns=report.spawns,
        skipped=report.skipped_lines,
        report=msgspec.json.encode(report, order="sorted").decode(),
    )
    draft = Draft(event=event, id=ids.derive(log.log_id, "import", "report", report.import_id), time=time)
    log.append_now([StreamAppend(stream=_report_stream(report.import_id), expected=0, drafts=(draft,))])


def _report_stream(import_id: str) -> str:
    return f"import:{import_id}"
