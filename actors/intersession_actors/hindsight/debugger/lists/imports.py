"""The verb `imports`: what imports refused, left out or changed, with file, line and reason (IMP-1)."""

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from intersession_actors.hindsight.debugger.lists.paging import Numbered, PageAnswer
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import Name
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import ImportReported, ready
from intersession_events.log.recorded import Recorded
from intersession_events.transcripts.openclaw.report import ImportReport
from intersession_projections.basics.row_prefilter import prefiltered
from intersession_projections.basics.spans import Span

WHATS: Final = ("skipped", "refused", "unattributed", "renamed", "note")
"""What a row can be of."""


@ready
class ImportsOf(Numbered, frozen=True, kw_only=True):
    """The arguments of `imports`; null counts as missing."""

    what: Annotated[
        Name | None,
        msgspec.Meta(description="Only rows of this: skipped, refused, unattributed, renamed or note."),
    ] = None


class ImportsAnswer(PageAnswer):
    """The imports, newest first, and row by row what they left out: `{what, position, file?, line?, reason, …}`.

    `imports` are `{position, timeMs, source, sessions, messages, exchanges, spawns, skipped, refusedSends, refusedSpawns}`.
    """

    imports: list[JsonObject]
    rows: list[JsonObject]


def list_imports(view: View, given: ImportsOf) -> ImportsAnswer:
    """Return what imports left out and why. It concerns all sessions, so only the operator may ask.

    Raises:
        ToolRefused: `what` or the cursor is invalid.
    """
    if given.what is not None and given.what not in WHATS:
        raise invalid("what", f"{given.what[:64]!a} is not one of {', '.join(WHATS)}")
    reports = [
        (recorded, msgspec.json.decode(recorded.event.report, type=ImportReport))
        for recorded in prefiltered(view.log, Span(), lambda row: row[3].startswith("import_reported."))
        if isinstance(recorded.event, ImportReported)
    ]
    rows = [
        row
        for recorded, report in reports
        for row in rows_of(recorded.position, report)
        if given.what in {None, row["what"]}
    ]
    page, cursor = given.page_of(rows)
    return {
        "imports": [_summary(recorded, report) for recorded, report in reports],
        "rows": page,
        "count": len(page),
        "cursor": cursor,
    }


def rows_of(position: int, report: ImportReport) -> Iterator[JsonObject]:
    """Yield what one import changed or left out, each with its reason."""
    for line in report.skipped:
        yield present(
            {
                "what": "skipped",
                "position": position,
                "file": line.file,
                "line": line.line,
                "lastLine": line.last_line if line.last_line != line.line else None,
                "reason": line.reason,
                "kept": line.kept or None,
            }
        )
    for what, found in (("refused", report.refused), ("unattributed", report.unattributed)):
        for one in found:
            file, _, number = one.where.rpartition(":")
            yield present(
                {
                    "what": what,
                    "position": position,
                    "file": file or one.where,
                    "line": int(number) if file and number.isdigit() else None,
                    "of": one.what,
                    "reason": one.reason,
                }
            )
    for each in report.renamed:
        yield {
            "what": "renamed",
            "position": position,
            "of": each.original,
            "key": each.key,
            "reason": each.reason,
        }
    for note in report.notes:
        yield {"what": "note", "position": position, "of": note.subject, "reason": note.what}


def _summary(recorded: Recorded, report: ImportReport) -> JsonObject:
    return {
        "position": recorded.position,
        "timeMs": recorded.time,
        "source": report.source,
        "sessions": report.sessions,
        "messages": report.messages,
        "exchanges": report.exchanges,
        "spawns": report.spawns,
        "skipped": report.skipped_lines,
        "refusedSends": report.refused_sends,
        "refusedSpawns": report.refused_spawns,
    }
