"""(j) A large log as a whole: made, opened with its views, listed and searched, woken, verified, built anew; with the memory."""

import resource
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import Figure, quantile, worked
from benchmarks.listing import reader_of
from benchmarks.logs import crowd, crowd_told, write_directly
from intersession_actors.calls.tools.sessions_list import list_sessions
from intersession_actors.owners.session.folding import SessionFolding
from intersession_actors.rules.prompt.window import nothing_earlier
from intersession_events.basics import ids
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.view_proof import views_proven
from intersession_projections.views.inline_views import inline_views

NAME = "size"
_KIB = 1024


def measure(directory: Path, *, sessions: int = 10_000, messages: int = 2, calls: int = 30) -> list[Figure]:
    """Take the processor time of each step, and the most memory that the process had by then."""
    path, said = directory / "log.db", f"{sessions:,} sessions, {sessions * (messages + 1):,} events"
    figures: list[Figure] = []

    def step(what: str, work: Callable[[], object]) -> None:
        began = time.process_time()
        work()
        seconds = time.process_time() - began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB
        figures.append(Figure(benchmark=NAME, name=f"{said}: {what}", value=seconds, unit="s cpu"))
        figures.append(
            Figure(benchmark=NAME, name=f"{said}: {what}, memory by then", value=memory, unit="MiB")
        )

    told: list[int] = []

    def progress(position: int, _last: int) -> None:
        told.append(position)

    step("made", lambda: write_directly(path, crowd_told(sessions, messages)))
    with SqliteLog(path, read_only=True) as log:
        step("events verified", lambda: verify_log(log, progress=progress))
        stream = ids.session_stream(list(crowd(sessions))[sessions // 2])
        folding = SessionFolding(room=0, earlier=nothing_earlier)
        waking = worked(lambda: log.states.fold(stream, folding), calls)
        figures.append(
            Figure(
                benchmark=NAME,
                name=f"{said}: a session woken, p50",
                value=quantile(waking, 0.5),
                unit="ms cpu",
            )
        )
    opened: list[SqliteLog] = []
    step(
        "views built",
        lambda: opened.append(SqliteLog(path, inline=inline_views(), on_folding=progress)),
    )
    with opened.pop() as log:
        reader = reader_of(log, "all")
        operator = reader.requester(None)
        for what, asked in (("a list", {}), ("a search", {"search": "telegram:group:-1"})):
            took = worked(lambda asked=asked: list_sessions(reader, operator, asked), calls)  # type: ignore[misc]  # bound
            figures.append(
                Figure(
                    benchmark=NAME,
                    name=f"{said}: {what} of 50, p50",
                    value=quantile(took, 0.5),
                    unit="ms cpu",
                )
            )
    with SqliteLog(path, read_only=True) as log:
        step("views verified", lambda: views_proven(log, inline_views(), progress))
    if not told:
        raise RuntimeError("nobody was told how far it is")
    return figures
