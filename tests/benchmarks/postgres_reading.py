"""What is read of a log on PostgreSQL beside the same log in a file, by turns in one run: lists, histories, wakings, places.

A figure is the time of the quickest call, with the least processor time of whoever calls; the ratio is what it takes of the file's.
Each is taken without a network, and with one of 1 and of 5 ms there and back.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure
from benchmarks.listing import reader_of
from benchmarks.logs import MAIN, crowd_told, long_session_told, write_directly
from intersession_actors.calls.tools.sessions_history import read_history
from intersession_actors.calls.tools.sessions_list import list_sessions
from intersession_actors.owners.session.context_cache import ContextCache
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics import ids
from intersession_events.copies.migrating import migrate
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.views.inline_views import inline_views
from support.postgres.network import network
from support.postgres.server import postgres_server

NAME: Final = "postgres-reading"
FILE: Final = "the file's"
NETWORKS: Final = (0, 1, 5)
"""Milliseconds there and back."""
_STREAM: Final = ids.session_stream(MAIN)


def measure(
    directory: Path, *, sessions: int = 10_000, messages: int = 10_000, calls: int = 30
) -> list[Figure]:
    """Ask both, one after the other, and say what each took."""
    path = directory / "log.db"
    write_directly(path, chain(crowd_told(sessions), long_session_told(messages)))
    figures: list[Figure] = []
    with postgres_server() as server:
        url = f"{server.url}&schema=read&files={directory}"
        migrate(str(path), url)
        with open_log(str(path), inline=inline_views()) as file:
            ones = questions(file, messages)
            for milliseconds in NETWORKS:
                where = f"{sessions:,} sessions, network {milliseconds} ms"
                with (
                    network(server.directory, delay_s=milliseconds / 2000) as between,
                    open_log(
                        between.url("read", files=str(directory)) if milliseconds else url,
                        inline=inline_views(),
                    ) as database,
                ):
                    others = questions(database, messages)
                    for name, one in ones.items():
                        figures += _beside(name, one, others[name], calls, where)
    return figures


def questions(log: PortableLog, messages: int) -> Mapping[str, Callable[[], object]]:
    """Return what is asked of a log whose long session has so many messages, by name."""
    reader = reader_of(log, "all")
    operator = reader.requester(None)
    middle = log.head() // 2

    def listed(**arguments: str | int) -> Callable[[], object]:
        return lambda: list_sessions(reader, operator, arguments)

    def history(before: str | None = None) -> Callable[[], object]:
        def read() -> None:
            with suppress(ToolRefused):
                read_history(reader, operator, {"sessionKey": MAIN, "limit": 50, "before": before})

        return read

    def wake() -> object:
        return log.states.fold(_STREAM, ContextCache(log).folding(MAIN))

    return {
        "list, no filter": listed(),
        "list, a search that finds one in 900": listed(search="job-17"),
        "list, as of the middle": listed(asOf=middle),
        "history, the last 50": history(),
        "history, 50 before the middle": history(f"answer-{messages // 4}"),
        "wake": wake,
    }


def _beside(
    name: str, one: Callable[[], object], other: Callable[[], object], calls: int, where: str
) -> list[Figure]:
    times = [float("inf")] * 2
    worked = [float("inf")] * 2
    for ask in (one, other):  # what is only done once
        ask()
    for _ in range(calls):
        for at, ask in enumerate((one, other)):
            began, processor = time.perf_counter(), time.thread_time()
            ask()
            worked[at] = min(worked[at], (time.thread_time() - processor) * 1000)
            times[at] = min(times[at], (time.perf_counter() - began) * 1000)
    return [
        Figure(
            benchmark=NAME,
            name=f"{where}, {name}, {store}, at least",
            value=quickest,
            unit="ms",
            cpu_ms=worked[at],
            ratios={FILE: quickest / max(times[0], 1e-9)} if at else {},
        )
        for at, (store, quickest) in enumerate(zip(("a file", "PostgreSQL"), times, strict=True))
    ]
