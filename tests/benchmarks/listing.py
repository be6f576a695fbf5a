"""(d) `sessions_list` in each of its forms, for each kind of requester, now and in the past."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, quantile, worked
from benchmarks.logs import AGENTS, MAIN, crowd_told, write_directly
from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.tools.sessions_list import list_sessions
from intersession_actors.rules.config.config import load_config
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.log.log import Log
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views

NAME = "list"

FORMS: Mapping[str, Mapping[str, Any]] = {
    "no filter": {},
    "with the last message of each": {"messageLimit": 1},
    "kinds that are all old": {"kinds": ["cron"]},
    "kinds that are many": {"kinds": ["group", "other"]},
    "an agent": {"agentId": "desk"},
    "a label that many have": {"label": "research"},
    "a label that one in 10,000 has": {"label": "rare"},
    "a label that nobody has": {"label": "nobody"},
    "active in the last hour": {"activeMinutes": 60},
    "a search that finds nothing": {"search": "no such"},
    "a search that finds one in 900": {"search": "job-17"},
    "a search that finds many": {"search": "telegram"},
    "agent, kinds and label": {"agentId": "main", "kinds": ["other"], "label": "rare"},
}
REQUESTERS = (
    ("the operator", None, "all"),
    *((f"sees {seen}", MAIN, seen) for seen in ("all", "agent", "tree", "self")),
)


def measure(directory: Path, *, sessions: int = 10_000, calls: int = 30) -> list[Figure]:
    """List 50 in each form: the processor time of the middle call, for the requester for whom it takes longest."""
    path = directory / "log.db"
    write_directly(path, crowd_told(sessions))
    with SqliteLog(path, inline=inline_views()) as log:
        middle = log.head() // 2
        return [
            figure
            for when, place in (("now", {}), ("asOf the middle", {"asOf": middle}))
            for form, arguments in FORMS.items()
            for figure in _slowest(
                log, f"{sessions:,} sessions, {when}, {form}", {**arguments, **place}, calls
            )
        ] + _pages(log, sessions)


def _slowest(log: Log, name: str, arguments: Mapping[str, Any], calls: int) -> list[Figure]:
    middles: dict[str, float] = {}
    for who, requester, visibility in REQUESTERS:
        reader = reader_of(log, visibility)

        def once(reader: Reader = reader, requester: str | None = requester) -> None:
            list_sessions(reader, reader.requester(requester), arguments)

        worked(once, 2)
        middles[who] = quantile(worked(once, calls), 0.5)
    slowest = max(middles, key=lambda who: middles[who])
    return [Figure(benchmark=NAME, name=f"{name}, p50 ({slowest})", value=middles[slowest], unit="ms cpu")]


def _pages(log: Log, sessions: int) -> list[Figure]:
    """Go from page to page with the cursor."""
    reader = reader_of(log, "all")
    cursors: list[str | None] = [None]

    def page() -> None:
        answer, _ = list_sessions(reader, reader.requester(None), {"cursor": cursors[-1]})
        cursors.append(answer.get("nextCursor"))

    samples = worked(page, min(50, sessions // 50))
    name = f"{sessions:,} sessions, from a cursor, p50"
    return [Figure(benchmark=NAME, name=name, value=quantile(samples, 0.5), unit="ms cpu")]


def reader_of(log: Log, visibility: str) -> Reader:
    """Return the reading half of a system whose sessions see so much."""
    config = load_config(
        {
            "tools": {
                "sessions": {"visibility": visibility},
                "agentToAgent": {"enabled": visibility == "all"},
            },
            "agents": {"list": [{"id": agent} for agent in AGENTS]},
        }
    ).config
    return Reader(log, config=lambda: config, clock=SystemClock())
