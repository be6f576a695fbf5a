"""What is read of a log on a server, and a batch of appends, take few ways there and back: each costs what the network takes."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from benchmarks.logs import (
    SECOND_MS,
    START_MS,
    crowd_told,
    draft,
    long_session_told,
    open_sessions,
    saying,
    session_key,
    to,
    turn,
    write_directly,
)
from benchmarks.postgres_reading import questions
from intersession import MemoryChannel, Outbound, SessionSystem, echo
from intersession import open_log as open_debugger
from intersession.web.questions.asking import read
from intersession.web.questions.table import QUESTIONS
from intersession_actors.assembly.methods.methods import METHODS
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_events.copies.migrating import migrate
from intersession_events.log.recorded import Committed, Outcome, StreamAppend
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.committing import Committing
from intersession_events.stores.portable.group_commit import Work
from intersession_projections.views.inline_views import inline_views
from support.postgres.network import network
from support.postgres.server import Server

MESSAGES = 300
WAYS = {
    "list, no filter": 4,
    "list, a search that finds one in 900": 5,
    "list, as of the middle": 6,
    "history, the last 50": 4,
    "history, 50 before the middle": 8,
    "wake": 1,
}
"""How often each call waits for the server, at most."""


def message(key: str, number: int) -> StreamAppend:
    """Return the append of a message, at a time of its own."""
    name, time = f"{key}-said-{number}", START_MS + (1000 + number) * SECOND_MS
    return to(key, draft(saying(key, name, "Is it done?", time), name, time))


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


OPENED = {"made": 24, "to write": 18, "to read": 6, "closed": 2}
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


@pytest.mark.clause("WORK-4")
@pytest.mark.postgres
def test_a_start_without_workers_opens_no_connection_for_their_queue(
    postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    schema = postgres_url.partition("schema=")[2].partition("&")[0]
    with (
        network(postgres.directory) as between,
        open_log(between.url(schema, files=str(tmp_path))) as log,
    ):
        assert log.query("SELECT 1") == [(1,)]
        before = between.answered
        assert log.work.standing() == []
        assert between.answered - before <= 2


@pytest.mark.postgres
@pytest.mark.parametrize("turns", [1, 64])
@pytest.mark.parametrize("written", [(turn, 2), (message, 1)], ids=["turns", "messages"])
def test_a_batch_takes_as_few_ways_to_the_server_and_back_for_many_turns_as_for_one(
    postgres: Server,
    postgres_url: str,
    tmp_path: Path,
    turns: int,
    written: tuple[Callable[[str, int], StreamAppend], int],
) -> None:
    """What is asked for all of them, then the events, the rows of views, and the commit; nothing is asked of known sessions."""
    schema = postgres_url.partition("schema=")[2].partition("&")[0]
    keys = [session_key(number) for number in range(turns)]
    append, ways = written
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
                log.append([append(key, round_)], told.append)
            before = between.answered
            assert log.step()
            taken.append(between.answered - before)
            assert len(told) == turns
            assert all(isinstance(one, Committed) for one in told)
        assert not log.step()
    assert min(taken) <= ways


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
    flying = _play(source, RUNS)
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


def _play(source: Path, runs: int) -> int:
    """Have so many exchanges and answers of people in a log, and return where the texts of all of them were on their way."""
    sent = threading.Event()

    def deliver(_: Outbound) -> None:
        sent.wait(60)

    with SessionSystem(str(source), agents=_agents(), channels={"t": deliver}, config=_OPEN) as system:
        for number in range(runs):
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
    return flying


def _agents() -> dict[str, Any]:
    return {"main": echo(), "research": echo()}


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


_BESIDE: Final = 2
"""So many more ways what a running system does meanwhile may take, and an exchange with a turn more."""
ASKER: Final = "agent:main:main"
ASKED_SESSION: Final = "agent:research:main"


class Asked(NamedTuple):
    """What is asked with, and how often that may wait for the server."""

    ways: int
    given: Mapping[str, Any] = {}


def methods_of(exchange: str, other: str, run_of_person: str) -> Mapping[str, Asked]:
    """Return every method that reads. What one of them takes of the server does not depend on how much it shows."""
    run = {"run": exchange}
    return {
        "agent.identity.get": Asked(0, {"agentId": "main"}),
        "agent.wait": Asked(7, {"runId": run_of_person, "timeoutMs": 1}),
        "agents.list": Asked(0),
        "calls.held": Asked(1),
        "chat.history": Asked(4, {"sessionKey": ASKED_SESSION}),
        "copies.at": Asked(1, {"places": [[f"session:{ASKED_SESSION}", 1 + at] for at in range(RUNS)]}),
        "copies.file": Asked(1, {"name": "0" * 64}),
        "copies.files": Asked(1),
        "copies.known": Asked(3),
        "copies.rows": Asked(1),
        "cron.list": Asked(5),
        "cron.runs": Asked(1, {"jobId": "news"}),
        "cron.status": Asked(5),
        "exports.make": Asked(8, {"to": "cloudevents"}),
        "debug.access": Asked(4),
        "debug.calls": Asked(20),
        "debug.deliveries": Asked(2),
        "debug.diff": Asked(17, {"a": exchange, "b": other}),
        "debug.erasures": Asked(3),
        "debug.events": Asked(3),
        "debug.hosts": Asked(4),
        "debug.imports": Asked(20),
        "debug.lens": Asked(10, run),
        "debug.messages": Asked(13),
        "debug.origin": Asked(3, {"words": "hello"}),
        "debug.replay": Asked(20, run),
        "debug.runs": Asked(8),
        "debug.search": Asked(10, {"words": "hello"}),
        "debug.show": Asked(7, run),
        "debug.smells": Asked(15),
        "debug.state": Asked(25),
        "debug.told": Asked(17, {"person": "ada"}),
        "debug.usage": Asked(6),
        "debug.why": Asked(16, {"of": exchange}),
        "exchanges.held": Asked(1),
        "forks.list": Asked(0),
        "health": Asked(20),
        "models.list": Asked(0),
        "sessions.list": Asked(7),
        "sessions.preview": Asked(8, {"keys": [ASKER, ASKED_SESSION]}),
        "sessions.resolve": Asked(1, {"key": ASKED_SESSION}),
        "status": Asked(29),
        "usage.budgets": Asked(0),
    }


_JOB: Final = {
    "schedule": {"kind": "cron", "expr": "0 9 1 1 *"},
    "payload": {"message": "what is new?"},
    "delivery": {"mode": "none"},
}


CHANGING: Final = {
    *(
        "agent",
        "chat.abort",
        "bundles.make",
        "chat.inject",
        "chat.send",
        "checkpoints.take",
        "deliveries.retry",
    ),
    *("calls.release", "cron.run", "cron.update", "sessions.compact"),
    *("exchanges.hold", "exchanges.release", "forks.make", "forks.remove", "notes.pin"),
    *("import.framework", "import.openclaw"),
    *("people.forget", "runs.retry", "send", "sessions.delete", "sessions.erase"),
    *("retention.apply", "sessions.patch", "sessions.reset"),
    *("worker.act", "worker.announce", "worker.answer", "worker.events"),
    *("worker.leave", "worker.next", "worker.renew", "worker.take"),
}
"""Methods that append, change the queue of workers, or write files: how often a batch waits for the server is counted by itself."""


def pages_of(exchange: str, other: str) -> Mapping[str, Asked]:
    """Return every question of the web debugger's pages."""
    run = {"run": exchange}
    return {
        "access": Asked(5),
        "calls": Asked(20),
        "compare": Asked(19, {"a": exchange, "b": other}),
        "deliveries": Asked(3),
        "hosts": Asked(5),
        "imports": Asked(20),
        "diff": Asked(18, {"a": exchange, "b": other}),
        "erasures": Asked(4),
        "event": Asked(5, {"at": 40}),
        "events": Asked(7),
        "forks": Asked(1, run),
        "integrity": Asked(1),
        "lens": Asked(11, run),
        "messages": Asked(14),
        "notes": Asked(2, run),
        "origin": Asked(4, {"words": "hello"}),
        "place": Asked(11, {**run, "at": "reply"}),
        "replay": Asked(20, run),
        "rows": Asked(3, run),
        "run": Asked(11, run),
        "runs": Asked(16, {"limit": 200}),
        "search": Asked(13, {"words": "hello"}),
        "sessions": Asked(12, {"limit": 200}),
        "schedules": Asked(5),
        "settings": Asked(2),
        "show": Asked(8, run),
        "told": Asked(18, {"person": "ada"}),
        "smells": Asked(16, {"limit": 200}),
        "state": Asked(26),
        "steps": Asked(4, run),
        "usage": Asked(7),
        "why": Asked(17, {"of": exchange}),
    }


@pytest.mark.clause("FIND-2", "PLACE-3")
@pytest.mark.postgres
def test_every_method_and_every_page_takes_few_ways(
    postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    source = tmp_path / "played.db"
    _play(source, RUNS)
    migrate(str(source), postgres_url)
    schema = postgres_url.partition("schema=")[2].partition("&")[0]
    with network(postgres.directory) as between:
        url = between.url(schema, files=str(tmp_path))

        def fewest(ask: Callable[[], object], asked: Asked) -> int:
            """Ask until nothing else does meanwhile: a system that has just started reads on beside it what was left open."""
            taken: list[int] = []
            until = time.monotonic() + 20
            while len(taken) < 4 or (min(taken) > asked.ways + _BESIDE and time.monotonic() < until):
                before = between.answered
                assert ask()
                taken.append(between.answered - before)
            return min(taken)

        with SessionSystem(
            url,
            agents=_agents(),
            channels={"t": MemoryChannel()},
            config=_OPEN | {"audit": {"access": "off"}, "cron": {"jobs": {"news": _JOB}}},
        ) as system:
            found = system.debug.runs(kind=("exchange",), end=("ok",), limit=2)["runs"]
            (person,) = system.debug.runs(kind=("run",), limit=1)["runs"]
            methods = methods_of(found[0]["id"], found[1]["id"], person["id"])

            def called(name: str, given: Mapping[str, Any]) -> object:
                answer = system.gateway.call(name, given)
                assert "error" not in answer, (name, answer)
                return answer

            of_methods = {
                name: fewest(partial(called, name, asked.given), asked) for name, asked in methods.items()
            }
        with open_debugger(url) as opened:
            pages = pages_of(found[0]["id"], found[1]["id"])
            questions_of_pages = {question.name: question for question in QUESTIONS}

            def looked(name: str, given: Mapping[str, Any]) -> object:
                question = questions_of_pages[name]
                return question.call(opened.debug.view, read(question, dict(given)))

            of_pages = {
                name: fewest(partial(looked, name, asked.given), asked) for name, asked in pages.items()
            }
    assert {*methods} | CHANGING == {*METHODS}, "say how often the new method may wait for the server"
    assert {*pages} == {*questions_of_pages}, "say how often the new question may wait for the server"
    assert {name: ways for name, ways in of_methods.items() if ways > methods[name].ways + _BESIDE} == {}, (
        of_methods
    )
    assert {name: ways for name, ways in of_pages.items() if ways > pages[name].ways + _BESIDE} == {}, (
        of_pages
    )
