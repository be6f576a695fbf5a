"""(i) `sessions_history` of one long session: its last messages, and those before any message."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from benchmarks.figures import Figure, quantile, worked
from benchmarks.listing import reader_of
from benchmarks.logs import MAIN, long_session_told, write_directly
from intersession_actors.calls.tools.sessions_history import read_history
from intersession_actors.rules.errors import ToolRefused
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views

NAME = "history"


def measure(directory: Path, *, messages: int = 10_000, calls: int = 30) -> list[Figure]:
    """Read pages of a session half of whose messages are answers of runs: the processor time of the middle call."""
    path = directory / "log.db"
    write_directly(path, long_session_told(messages))
    with SqliteLog(path, inline=inline_views()) as log:
        reader = reader_of(log, "all")
        operator = reader.requester(None)

        def read(before: str | None = None, limit: int = 50) -> Callable[[], None]:
            def once() -> None:
                with suppress(ToolRefused):
                    read_history(reader, operator, {"sessionKey": MAIN, "limit": limit, "before": before})

            return once

        forms: Mapping[str, Callable[[], None]] = {
            "the last 10": read(limit=10),
            "the last 50": read(),
            "10 before a message in the middle": read(f"answer-{messages // 4}", 10),
            "50 before a message in the middle": read(f"answer-{messages // 4}"),
            "50 before one of the first": read("answer-30"),
            "before an unknown message": read("nobody-said-this"),
        }
        return [
            Figure(
                benchmark=NAME,
                name=f"{messages:,} messages, {form}, p50",
                value=quantile(worked(once, calls), 0.5),
                unit="ms cpu",
            )
            for form, once in forms.items()
        ]
