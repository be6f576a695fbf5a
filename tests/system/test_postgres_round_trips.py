"""What is read of a log on a server, and a batch of appends, take few ways there and back: each costs what the network takes."""

import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

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
from intersession import MemoryChannel, Outbound, SessionSystem, echo
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
    "list, a search that finds one in 900": 10,
    "list, as of the middle": 7,
    "history, the last 50": 4,
    "history, 50 before the middle": 8,
    "wake": 1,
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


class Asks(NamedTuple):
    """What is asked of a log whose runs take so many events each. At `flying` the texts of all of them were on their way."""

    debug: Debugger
    limit: int
    flying: int

    @property
    def middle(self) -> str:
        return f"#{self.flying // 2}"

    @property
    def since(self) -> str:
        """Behind which place about twice as many exchanges and runs stand."""
        return f"#{self.flying - self.limit * self.flying // (2 * RUNS)}"


RUNS: Final = 32
ASKED: Mapping[str, Callable[[Asks], Any]] = {
    "runs": lambda asks: asks.debug.runs(limit=asks.limit),
    "runs that are open": lambda asks: asks.debug.runs(open_=True, limit=asks.limit),
    "runs that failed": lambda asks: asks.debug.runs(failed=True, limit=asks.limit),
    "runs of a channel": lambda asks: asks.debug.runs(channel="t", limit=asks.limit),
    "runs of a person": lambda asks: asks.debug.runs(person="ada", limit=asks.limit),
    "runs that ended so": lambda asks: asks.debug.runs(end=("ok",), limit=asks.limit),
    "runs with words": lambda asks: asks.debug.runs(words="hello", since=asks.since),
    "runs with smells": lambda asks: asks.debug.runs(smell=True, limit=asks.limit),
    "runs as they stood": lambda asks: asks.debug.runs(at=asks.middle, limit=asks.limit),
    "runs with texts on their way": lambda asks: asks.debug.runs(at=f"#{asks.flying}", limit=asks.limit),
    "runs of a channel, as they stood": lambda asks: asks.debug.runs(
        at=f"#{asks.flying}", channel="t", limit=asks.limit
    ),
    "smells": lambda asks: asks.debug.smells(since=asks.since),
    "smells as they stood": lambda asks: asks.debug.smells(since=asks.since, at=f"#{asks.flying}"),
    "messages": lambda asks: asks.debug.messages(why=True, limit=asks.limit),
    "messages for a person": lambda asks: asks.debug.messages(person="ada", limit=asks.limit),
    "deliveries": lambda asks: asks.debug.deliveries(limit=asks.limit),
    "events": lambda asks: asks.debug.events(limit=asks.limit),
    "state": lambda asks: asks.debug.state(at=asks.middle, limit=asks.limit, messages=0),
    "state with words": lambda asks: asks.debug.state(at=asks.middle, limit=asks.limit),
    "state of a session": lambda asks: asks.debug.state(
        "agent:research:main", at=f"#{asks.flying}", limit=asks.limit
    ),
    "state of an agent's": lambda asks: asks.debug.state(
        at=f"#{asks.flying}", as_="agent:research:main", limit=asks.limit
    ),
}
"""Lists whose rows are judged and told by what stands elsewhere."""


@pytest.mark.clause("FIND-2", "PLACE-3", "SMELL-1")
@pytest.mark.postgres
def test_a_list_takes_as_few_ways_for_many_rows_as_for_few(
    postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    source = tmp_path / "played.db"
    agents = {"main": echo(), "research": echo()}
    sent = threading.Event()

    def deliver(_: Outbound) -> None:
        sent.wait(60)

    with SessionSystem(str(source), agents=agents, channels={"t": deliver}, config=_OPEN) as system:
        for number in range(RUNS):
            asked = {"sessionKey": "agent:research:main", "message": f"{number}?", "timeoutSeconds": 20}
            assert system.tools("agent:main:main").call("sessions_send", asked)["status"] == "ok"
            waiting = {"agentId": "late", "message": f"{number}?", "timeoutSeconds": 0}
            assert system.tools("agent:main:main").call("sessions_send", waiting)["status"] == "accepted"
            system.inbound(
                channel="t",
                chat_id=f"{number}",
                chat_type="group",
                sender="ada",
                text=f"hello {number}",
                wait=20,
            )
        flying = system.log.head()
        sent.set()
        while system.log.query("SELECT 1 FROM flows WHERE kind = 'delivery' AND is_open = 1"):
            system.log.wait_for(system.log.head() + 1, timeout=1)
    migrate(str(source), postgres_url)
    schema = postgres_url.partition("schema=")[2].partition("&")[0]
    with (
        network(postgres.directory) as between,
        open_debugger(between.url(schema, files=str(tmp_path))) as opened,
    ):

        def ways(ask: Callable[[Asks], Any], limit: int) -> int:
            taken: list[int] = []
            for _ in range(4):
                before = between.answered
                assert ask(Asks(opened.debug, limit, flying))
                taken.append(between.answered - before)
            return min(taken)

        few = {name: ways(ask, 4) for name, ask in ASKED.items()}
        many = {name: ways(ask, 24) for name, ask in ASKED.items()}
    assert {name: (few[name], many[name]) for name in ASKED if many[name] - few[name] > _MORE} == {}


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
