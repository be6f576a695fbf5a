"""What is read of a log on a server, and a batch of appends, take few ways there and back: each costs what the network takes."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.logs import (
    crowd_told,
    long_session_told,
    open_sessions,
    session_key,
    turn,
    write_directly,
)
from benchmarks.postgres_reading import questions
from intersession import MemoryChannel, SessionSystem, echo
from intersession import open_log as open_debugger
from intersession_actors.debugger import Debugger
from intersession_events.log import Committed, Outcome
from intersession_events.stores import migrate, open_log
from intersession_events.stores.portable.committing import Committing
from intersession_events.stores.portable.group_commit import Work
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
WAYS_OF_A_BATCH = 2


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


OPENED = {"made": 29, "to write": 18, "to read": 6, "closed": 2}
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


@pytest.mark.postgres
@pytest.mark.parametrize("turns", [1, 64])
def test_a_batch_takes_as_few_ways_to_the_server_and_back_for_many_turns_as_for_one(
    postgres: Server, postgres_url: str, tmp_path: Path, turns: int
) -> None:
    """What is asked for all of them, then the events, the rows of views, and the commit."""
    schema = postgres_url.partition("schema=")[2].partition("&")[0]
    keys = [session_key(number) for number in range(turns)]
    taken: list[int] = []
    with (
        network(postgres.directory) as between,
        open_log(between.url(schema, files=str(tmp_path)), inline=inline_views(), threads=False) as log,
    ):
        open_sessions(log, keys)
        # Often enough for all that is asked to be prepared.
        for round_ in range(6):
            told: list[Outcome] = []
            for key in keys:
                log.append([turn(key, round_)], told.append)
            before = between.answered
            assert log.step()
            taken.append(between.answered - before)
            assert len(told) == turns
            assert all(isinstance(one, Committed) for one in told)
        assert not log.step()
    assert min(taken) <= WAYS_OF_A_BATCH


ASKED: Mapping[str, Callable[[Debugger, int], Any]] = {
    "runs": lambda debug, limit: debug.runs(limit=limit),
    "runs that are open": lambda debug, limit: debug.runs(open_=True, limit=limit),
    "runs that failed": lambda debug, limit: debug.runs(failed=True, limit=limit),
    "runs of a channel": lambda debug, limit: debug.runs(channel="t", limit=limit),
    "runs that ended so": lambda debug, limit: debug.runs(end=("ok",), limit=limit),
    "runs as they stood": lambda debug, limit: debug.runs(at=f"#{debug.view.log.head() // 2}", limit=limit),
    "messages": lambda debug, limit: debug.messages(why=True, limit=limit),
    "deliveries": lambda debug, limit: debug.deliveries(limit=limit),
    "state": lambda debug, limit: debug.state(at=f"#{debug.view.log.head() // 2}", limit=limit, messages=0),
}
"""Lists whose rows are judged and told by what stands elsewhere."""


@pytest.mark.clause("FIND-2", "PLACE-3")
@pytest.mark.postgres
def test_a_list_takes_as_few_ways_for_many_rows_as_for_few(
    postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    source = tmp_path / "played.db"
    agents = {"main": echo(), "research": echo()}
    with SessionSystem(str(source), agents=agents, channels={"t": MemoryChannel()}, config=_OPEN) as system:
        for number in range(32):
            system.inbound(channel="t", chat_id="ada", sender="ada", text=f"hello {number}", wait=20)
            asked = {"sessionKey": "agent:research:main", "message": f"{number}?", "timeoutSeconds": 20}
            assert system.tools("agent:main:main").call("sessions_send", asked)["status"] == "ok"
            waiting = {"agentId": "late", "message": f"{number}?", "timeoutSeconds": 0}
            assert system.tools("agent:main:main").call("sessions_send", waiting)["status"] == "accepted"
    migrate(str(source), postgres_url)
    schema = postgres_url.partition("schema=")[2].partition("&")[0]
    with (
        network(postgres.directory) as between,
        open_debugger(between.url(schema, files=str(tmp_path))) as opened,
    ):
        debug = opened.debug

        def ways(ask: Callable[[Debugger, int], Any], limit: int) -> int:
            taken: list[int] = []
            for _ in range(8):
                before = between.answered
                assert ask(debug, limit)
                taken.append(between.answered - before)
            return min(taken)

        few = {name: ways(ask, 4) for name, ask in ASKED.items()}
        many = {name: ways(ask, 24) for name, ask in ASKED.items()}
    assert {name: many[name] - few[name] for name in ASKED if many[name] - few[name] > _MORE} == {}


_OPEN: Final = {
    "agents": {"list": [{"id": "main"}, {"id": "research"}, {"id": "late"}]},
    "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
    "session": {"agentToAgent": {"limits": {"runs": 0}}},
}
_MORE: Final = 4
"""So many more ways six times as many rows may take: one by one, they would take twenty at least."""


@pytest.mark.postgres
def test_no_batch_that_opens_sessions_is_written_twice(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: list[Sequence[Work]] = []
    write = Committing._write

    def counted(
        self: Committing, batch: Sequence[Work], failed: dict[Work, Exception], *, isolated: bool
    ) -> None:
        if isolated and not batch[0].alone:
            again.append(batch)
        write(self, batch, failed, isolated=isolated)

    monkeypatch.setattr(Committing, "_write", counted)

    with SessionSystem(postgres_url, agents={"main": echo()}, channels={"t": MemoryChannel()}) as system:
        for name in ("ada", "bo"):
            answer = system.inbound(
                channel="t", chat_id=name, chat_type="group", sender=name, text="hello", wait=20
            )
            assert answer["status"] == "ok"
        assert len(system.log.streams("session:")) == 2

    assert again == []
