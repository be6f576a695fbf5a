"""Imports an OpenClaw state directory into a log: sessions, messages, exchanges, spawns, and a report (IMP-1 to IMP-4).

What an auditor may rely on:

* *Nothing is lost.* Every line is in the log verbatim, or has a line in the report that says why it is not. Every entry
  is kept verbatim too. The report itself is in the log, in the stream `import:<id>`.
* *Nothing is mixed.* A key that the log has already, from somewhere else or because its session went on here after an
  earlier import, is left alone: the imported session is kept beside it as `agent:<agent>:imported-<sessionId>`, with
  the original key in `SessionOpened.original_key` and a line in the report. `on_taken="refuse"` refuses instead.
* *Nothing is doubled.* An event's id is derived from what it is (agent, transcript, entry), not from where the
  directory lies or when it was imported. Importing again appends nothing; a state that has grown appends what is new.
  An exchange or spawn that an earlier import closed stays as it was then inferred, and the report names it.
* *Nothing is made up.* Messages are as they were, provenance too. Exchanges and spawns are inferred, marked so, and
  name the lines they are inferred from. Imported runs are no runs of ours: no `RunQueued` is written, and every flow is
  closed, so that nothing of it is ever taken up again.
* *Time is the source's.* All files are merged by time, ties by path and line, and appended in that order.

A whole state is held in memory, about three times its size, while it is planned.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from intersession_events import ids
from intersession_events.errors import ImportFailed
from intersession_events.log import Log
from intersession_events.recorded import Draft, StreamAppend
from intersession_events.session import LineImported, MessageRecorded
from intersession_events.system import ImportReported
from intersession_events.transcripts.openclaw_append import (
    KnownStreams,
    Progress,
    append_fresh,
    fresh,
)
from intersession_events.transcripts.openclaw_files import read_state
from intersession_events.transcripts.openclaw_plan import ImportPlan, plan, plan_survey
from intersession_events.transcripts.openclaw_report import ImportReport, Note
from intersession_events.transcripts.openclaw_sessions import Survey, survey
from intersession_events.transcripts.openclaw_state import OpenClawState

__all__ = [
    "ImportPlan",
    "ImportReport",
    "OpenClawState",
    "import_openclaw",
    "plan",
    "read_state",
]


def import_openclaw(
    directory: Path,
    log: Log,
    *,
    clock: Callable[[], int],
    progress: Progress | None = None,
    on_taken: Literal["beside", "refuse"] = "beside",
) -> ImportReport:
    """Import a state directory, as far as the log does not have it yet.

    `clock` gives the time of the import in milliseconds, for the report alone. `progress` is told (events appended,
    events to append) after each batch. What was appended before an error stays; importing again goes on from there.

    Raises:
        ImportFailed: the directory is no OpenClaw state, or, with `on_taken="refuse"`, has keys the log has.
        AppendConflict: somebody else wrote to an imported session meanwhile.
        StoreUnavailable: the store could not take it.
    """
    found = survey(read_state(directory))
    known = KnownStreams(log)
    taken = _foreign(found, known)
    planned = plan_survey(found, log_id=log.log_id, taken=taken)
    parted = _parted(found, planned, known)
    if parted:
        taken |= parted
        planned = plan_survey(found, log_id=log.log_id, taken=taken)
    if taken and on_taken == "refuse":
        raise ImportFailed(f"the log has other sessions of these keys already: {', '.join(sorted(taken))}")
    new = fresh(planned, known)
    appended = append_fresh(log, new, progress)
    notes = tuple(
        Note(subject=stream, what="goes on in the state; left as an earlier import had closed it")
        for stream in new.left
    )
    reported = log.stream(_report_stream(planned.import_id), limit=1)
    report = msgspec.structs.replace(
        planned.report,
        appended=appended,
        already_imported=appended == 0 and bool(reported),
        notes=(*planned.report.notes, *notes),
    )
    if not reported:
        _record(report, log, clock())
    return report


def _foreign(found: Survey, known: KnownStreams) -> set[str]:
    """Return the keys whose sessions in the log no import of this state made."""
    foreign: set[str] = set()
    for session in found.sessions:
        here = known.of(ids.session_stream(str(session.key)))
        ours = {generation.session_id for generation in session.generations}
        if here.version and not ours & here.generations:
            foreign.add(str(session.key))
    return foreign


def _parted(found: Survey, planned: ImportPlan, known: KnownStreams) -> set[str]:
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


def _record(report: ImportReport, log: Log, time: int) -> None:
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
