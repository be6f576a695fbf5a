"""What is read of a log on a server takes few ways there and back: with a network, each costs what the network takes."""

from itertools import chain
from pathlib import Path

import pytest

from benchmarks.logs import crowd_told, long_session_told, write_directly
from benchmarks.postgres_reading import questions
from intersession_events.stores import migrate, open_log
from intersession_projections.inline_views import inline_views
from support.postgres.network import network
from support.postgres.server import Server

MESSAGES = 300
WAYS = {
    "list, no filter": 4,
    "list, a search that finds one in 900": 11,
    "list, as of the middle": 7,
    "history, the last 50": 4,
    "history, 50 before the middle": 8,
    "wake": 2,
}
"""How often each call waits for the server, at most."""


@pytest.mark.postgres
def test_reading_takes_few_ways_to_the_server_and_back(
    postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    source = tmp_path / "told.db"
    write_directly(source, chain(crowd_told(1_000), long_session_told(MESSAGES)))
    migrate(str(source), postgres_url)
    schema = postgres_url.partition("schema=")[2].partition("&")[0]
    with (
        network(postgres.directory) as between,
        open_log(between.url(schema, files=str(tmp_path)), inline=inline_views()) as log,
    ):
        waited: dict[str, int] = {}
        for name, ask in questions(log, MESSAGES).items():
            taken: list[int] = []
            # Often enough for psycopg to have prepared what it prepares, on each of the connections that are kept.
            for _ in range(20):
                before = between.answered
                ask()
                taken.append(between.answered - before)
            waited[name] = min(taken)
    assert waited == WAYS


OPENED = {"made": 23, "to write": 18, "to read": 6, "closed": 2}
"""How often opening a log with all of a system's views waits for the server, its connections included, and closing it."""


@pytest.mark.postgres
def test_opening_takes_few_ways_to_the_server_and_back(
    postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    schema = postgres_url.partition("schema=")[2].partition("&")[0]
    with network(postgres.directory) as between:
        url = between.url(schema, files=str(tmp_path))

        def opened(*, read_only: bool = False) -> tuple[int, int]:
            before = between.answered
            log = open_log(url, inline=inline_views(), read_only=read_only)
            ready = between.answered
            log.close()
            return ready - before, between.answered - ready

        made, closed = opened()
        ways = {"made": made, "to write": opened()[0], "to read": opened(read_only=True)[0], "closed": closed}
    assert {what: ways[what] <= most for what, most in OPENED.items()} == dict.fromkeys(OPENED, True), ways
