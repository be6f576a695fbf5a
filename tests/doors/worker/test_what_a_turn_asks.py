"""What a turn at a worker asks of its writer: counted, so that nobody makes it dearer unseen (WORK-14)."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf
from types import FrameType
from typing import Any

import pytest

from intersession import Turn
from intersession.gateway.protocol.client import GatewayClient
from intersession.gateway.protocol.line import Line
from intersession.gateway.protocol.run_events import RunEvent, RunEvents
from intersession_actors.assembly.methods import working
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.log.recorded import Recorded
from support.beside import Beside, beside
from support.doors.gateway_live import TOKEN
from support.running import WAIT

TURNS = 10


def agent(turn: Turn) -> str:
    return f"{turn.message} {len(turn.transcript)}"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count by method what workers ask, whether a writer answers it or not."""
    counted, ask = Counter[str](), Line.ask

    def counting(self: Line, method: str, *given: Any, **named: Any) -> Any:
        counted[method] += 1
        return ask(self, method, *given, **named)

    monkeypatch.setattr(Line, "ask", counting)
    return counted


class Statements:
    """Counts the statements and the commits of all threads that were begun since."""

    def __init__(self) -> None:
        self.found = Counter[str]()

    def __call__(self, _: FrameType, event: str, what: Any) -> None:
        if event == "c_call" and what.__name__ in {"execute", "executemany", "commit"}:
            self.found["commits" if what.__name__ == "commit" else "statements"] += 1


@pytest.fixture
def statements() -> Iterator[Statements]:
    before, counting = threading.getprofile(), Statements()
    threading.setprofile(counting)
    yield counting
    threading.setprofile(before)


def replies(writer: Beside, number: int) -> list[str]:
    return [writer.ask("how many?")["reply"] for _ in range(number)]


@pytest.mark.clause("WORK-14")
@pytest.mark.sqlite("a server is asked otherwise, and by the worker itself")
def test_a_turn_is_one_request(statements: Statements, asked: Counter[str], tmp_path: Any) -> None:
    with beside(f"{tmp_path}/log.db", {"main": agent}) as writer:
        replies(writer, 1)
        most = {"statements": 36, "commits": 4}
        least = dict.fromkeys(most, inf)
        for times in range(1, 6):  # counted again where a busy machine counts more
            asked.clear()
            statements.found.clear()

            assert replies(writer, TURNS)[-1] == f"how many? {2 * TURNS * times}"
            # What the worker asks by the clock is not of a turn.
            assert asked["worker.events"] == asked["worker.answer"] == 0
            assert asked["worker.next"] >= TURNS
            # With an answer goes the question for the next call; one may be asked anew meanwhile, since nothing came.
            assert asked["worker.take"] <= TURNS + 1
            least = {kind: min(statements.found[kind] / TURNS, least[kind]) for kind in most}
            if all(least[kind] <= most[kind] for kind in most):
                break
        assert {kind: number for kind, number in least.items() if number > most[kind]} == {}


def test_no_events_are_made_where_workers_alone_are_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    made = threading.Semaphore(0)

    def making(_: RunEvents, _recorded: Recorded) -> Sequence[RunEvent]:
        made.release()
        return ()

    monkeypatch.setattr(RunEvents, "events_for", making)
    with beside(":memory:", {"main": agent}) as writer:
        replies(writer, 1)
        assert not made.acquire(blocking=False)
        with GatewayClient(writer.live.address, TOKEN):
            replies(writer, 1)
            assert made.acquire(timeout=WAIT)


@pytest.mark.clause("WORK-14")
def test_a_worker_that_lacks_more_than_came_with_its_call_asks_for_it(asked: Counter[str]) -> None:
    with beside(":memory:") as writer:
        with writer.worker({"main": agent}, name="one"):
            replies(writer, 2)
            assert asked["worker.events"] == 0
        # Under the same name, so that the writer takes it for the one that has the session.
        writer.worker({"main": agent}, name="one")

        assert replies(writer, 2) == ["how many? 4", "how many? 6"]
        assert asked["worker.events"] == 1


@pytest.mark.ci
@pytest.mark.clause("WORK-14")
def test_of_a_long_session_a_new_worker_reads_the_rest_itself(
    asked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "_FEW", 4)
    with beside(":memory:") as writer:
        with writer.worker({"main": agent}):
            replies(writer, 3)
        asked.clear()
        writer.worker({"main": agent})

        assert replies(writer, 2) == ["how many? 6", "how many? 8"]
        assert asked["worker.events"] == 1


@pytest.mark.ci
@pytest.mark.clause("WORK-14")
def test_a_call_whose_events_cannot_be_read_just_then_is_given_all_the_same(
    asked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with beside(":memory:", {"main": agent}) as writer:
        stream = writer.system.log.stream

        def away(name: str, **given: Any) -> Any:
            if threading.current_thread().name.startswith(("doors", "workers-told")):
                raise StoreUnavailable("the disk is away")
            return stream(name, **given)

        monkeypatch.setattr(writer.system.log, "stream", away)

        assert replies(writer, 1) == ["how many? 0"]
        assert asked["worker.events"] == 1
