"""`intersession erasures`: what was erased, by whom and why."""

from collections.abc import Sequence

from intersession.cli.host.verb_call import VerbCall, asks
from intersession.cli.questions.paging import PAGE, Page
from intersession.cli.shell.answer import Answer
from intersession.cli.shell.terminal import Screen, one_line
from intersession.cli.shell.times import moment
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.hindsight.debugger.lists.erasures import (
    ErasuresAnswer,
    ErasuresOf,
    erasures_found,
)
from intersession_actors.hindsight.debugger.verbs.verbs import ERASURES
from intersession_events.basics.plain_json import JsonObject

_REASON_CHARS = 60


@asks(ERASURES)
def erasures(asked: VerbCall[ErasuresAnswer], *, page: Page = PAGE) -> Answer:
    """List what was erased, by whom and why.

    Newest first: of which stream, how many payloads and files, and the checkpoint that covers it, as the log says. `intersession verify`
    proves that nothing else was erased.
    """
    with asked.view() as view:
        found = erasures_found(view, read_arguments(ErasuresOf, asked.given | page.given), page.most)
    return page.answer(found, "erasures", lambda row: row, _show, what="erasure")


def _show(screen: Screen, rows: Sequence[JsonObject]) -> None:
    screen.table(
        ["position", "when (UTC)", "by", "of", "payloads", "files", "checkpoint", "why"],
        [
            (
                f"#{row['position']}",
                moment(row["timeMs"]),
                row["by"],
                row["stream"],
                str(row["payloads"]),
                str(row.get("files", "")),
                _covered(row.get("checkpoint")),
                one_line(": ".join(row[name] for name in ("rule", "reason") if name in row), _REASON_CHARS),
            )
            for row in rows
        ],
    )


def _covered(checkpoint: JsonObject | None) -> str:
    if checkpoint is None:
        return "none yet"
    told = [f"#{checkpoint['at']}"]
    if "keyId" in checkpoint:
        told.append("signed")
    if "publishedTo" in checkpoint:
        told.append("published")
    return ", ".join(told)
