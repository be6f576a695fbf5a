"""What live pages are told of besides positions: words that are erased, and forks that somebody else makes."""

import asyncio
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from intersession import SessionSystem
from intersession.web.alone import ReadOnly
from intersession.web.happened import ForksBeside, ForksFolder
from intersession.web.rate import Rates
from intersession_actors.calls.service.reader import Reader
from intersession_events.stores.opened import open_log
from support.doors.command_line import ran
from support.doors.gateway_live import READER, TOKEN, WAIT, LiveGateway, newest
from support.doors.web_log import played
from support.fakes import ManualClock

MAIN, RESEARCH = "agent:main:main", "agent:research:main"


class Happening(NamedTuple):
    system: SessionSystem
    gateway: LiveGateway
    store: Path
    run: str


@pytest.fixture
def happening(tmp_path: Path) -> Iterator[Happening]:
    store = tmp_path / "played.db"
    with played(store=store) as (system, gateway):
        yield Happening(system, gateway, store, newest(gateway))


@contextmanager
def listening(gateway: LiveGateway, token: str = TOKEN) -> Generator[Iterator[tuple[str, Any]]]:
    """Yield what a page is told, each with its name."""
    with gateway.http(token) as client, client.stream("GET", "/debug/api/live") as response:
        yield told_in(response)


def told_in(response: httpx.Response) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def tell(system: SessionSystem, text: str, agent: str) -> str:
    """Return the session that heard it."""
    answer = system.inbound(
        channel="telegram",
        chat_id=f"zoe-{agent}",
        sender="zoe",
        agent_id=agent,
        text=text,
        wait=WAIT,
        chat_type="group",
        deliver=False,
    )
    return answer["sessionKey"]


def forked(happening: Happening) -> Path:
    """Have a fork made by the command line; return its file."""
    done = ran(
        "fork",
        happening.run,
        "--at",
        "turn:2",
        "--skip",
        "--agent",
        "*=recorded",
        "--loose",
        "--store",
        happening.store,
        "--json",
    )
    assert done.exit_code == 0, done.err
    return Path(json.loads(done.out)["store"])


def until(told: Iterator[tuple[str, Any]], wanted: str) -> list[str]:
    """Return the names of what is told up to one of this name."""
    names: list[str] = []
    for name, _ in told:
        names.append(name)
        if name == wanted:
            return names
    raise AssertionError(names)


@pytest.mark.clause("ERASE-1")
def test_who_sees_a_session_is_told_that_its_words_were_erased_before_anything_else(
    happening: Happening,
) -> None:
    with listening(happening.gateway) as told, listening(happening.gateway, READER) as limited:
        assert next(told)[0] == "forks"
        happening.system.erase(MAIN, unsent="giveUp")
        assert until(told, "head") == ["erased", "head"]
        assert until(limited, "head") == ["erased", "head"]


@pytest.mark.clause("ERASE-1", "VIS-1")
def test_what_is_erased_in_a_session_that_somebody_does_not_see_is_told_to_them_by_nothing(
    happening: Happening,
) -> None:
    other = tell(happening.system, "Something for research alone", "research")
    assert other.startswith("agent:research:")
    with listening(happening.gateway, READER) as limited:
        happening.system.erase(other)
        tell(happening.system, "Something for main", "main")
        assert until(limited, "head") == ["head"]


@pytest.mark.clause("FORK-9")
def test_a_fork_that_another_process_makes_or_deletes_is_told_to_the_operator_alone(
    happening: Happening,
) -> None:
    with happening.gateway.http() as client:

        def state() -> str:
            return str(client.get("/debug/api/forks").json()["state"])

        with listening(happening.gateway) as told, listening(happening.gateway, READER) as limited:
            _, before = next(told)
            assert before == {"state": state(), "erased": []}
            file = forked(happening)
            for _, said in told:
                if said["state"] != before["state"]:
                    break
            assert state() != before["state"]
            assert state() == state(), "to look at forks does not change them"

            file.unlink()
            for _, said in told:
                if said["state"] == before["state"]:
                    break
            tell(happening.system, "Something for main", "main")
            assert until(limited, "head") == ["head"]


@pytest.mark.clause("ERASE-1", "FORK-9")
def test_words_that_are_erased_in_a_fork_are_told_with_its_name(happening: Happening) -> None:
    file = forked(happening)
    with open_log(str(happening.store), read_only=True) as log:
        now = 0.0
        folder = ForksFolder(log, monotonic=lambda: now, every_s=1.0)
        forks, other = ForksBeside(folder), ForksBeside(folder)
        assert forks.news() is not None
        assert forks.news() is None
        assert other.news() is not None
        assert ran("erase", RESEARCH, "--yes", "--give-up-unsent", "--store", file).exit_code == 0
        assert forks.news() is None, "it is looked once in a while, for all pages together"
        now = 1.0
        for page in (forks, other):
            assert file.stem in json.loads((page.news() or b"").partition(b"data: ")[2])["erased"]
            assert page.news() is None


@pytest.mark.ci
@pytest.mark.clause("ERASE-1")
def test_who_reads_beside_the_host_is_told_all_the_same(log_url: str) -> None:
    ending = False

    async def told(system: SessionSystem) -> list[bytes]:
        nonlocal ending
        with open_log(log_url, read_only=True) as log:
            reader = Reader(log, config=lambda: system.config, clock=ManualClock())
            watching = ReadOnly(
                reader, Rates(lambda: 0.0), monotonic=count().__next__, ending=lambda: ending, can=()
            )
            stream = watching.live(None)
            found = [await anext(stream), await anext(stream)]
            await asyncio.to_thread(system.erase, MAIN, unsent="giveUp")
            found += [await anext(stream), await anext(stream)]
            ending = True
            assert [one async for one in stream] == []
            return found

    with played(store=log_url) as (system, _):
        retry, forks, erased, head = asyncio.run(told(system))
    assert retry.startswith(b"retry")
    assert b"event: forks" in forks
    assert erased.startswith(b"event: erased")
    assert b"event: head" in head
