"""What a flow is told late, after it was read again, is not taken for the answer to what was asked since."""

from collections import deque
from collections.abc import Iterator
from queue import Queue
from typing import Any

import pytest

from intersession_actors.flows import Flow, ProcessManager
from intersession_actors.streams import (
    Ask,
    BeginsFlow,
    FlowCommand,
    Plan,
    SessionReadBack,
    Step,
    StepRefused,
    StepTaken,
    Told,
)
from intersession_events.errors import StoreUnavailable
from intersession_events.facts import ExchangeClosed, LoopEnded
from intersession_events.log import OnLoaded, Recorded, StreamAppend
from intersession_events.stores import SqliteLog
from support.flows import a_world, counting

STREAM = "exchange:x"
KEY = "agent:main:main"


class Begin(BeginsFlow, frozen=True, kw_only=True):
    @property
    def stream(self) -> str:
        return STREAM


class Go(FlowCommand, frozen=True, kw_only=True):
    stream: str = STREAM
    through_session: bool = False
    """Whether a session's actor records it, and not the manager."""


OWN = Go()
THROUGH = Go(through_session=True)


class StepOfSession(Step, frozen=True, kw_only=True):
    carried: tuple[StreamAppend, ...]


class ReadsAtOnce(SqliteLog):
    """A log that is read before it writes what it was asked for earlier, as a log with threads may be."""

    def load(self, stream: str, on_loaded: OnLoaded, *, after: int = 0) -> None:
        on_loaded(list(self.stream(stream, after=after)))


COUNTING = counting(Begin | Go)


class Bench(ProcessManager[int, Begin | Go, None]):
    """A manager whose inbox, log and sessions are moved by hand."""

    def __init__(self, log: SqliteLog) -> None:
        aside: Queue[tuple[str, str]] = Queue()
        world = a_world(log, aside)
        self.asked: list[Any] = []
        """What sessions' actors were told, in order."""
        self.resumed: list[str] = []
        self.acted: list[str] = []
        self.inbox: deque[Any] = deque()
        self.log = log
        world.mail.tell_session = lambda _key, command: self.asked.append(command)
        world.mail.resume_flow = self.resumed.append
        super().__init__(world, COUNTING)

    def tell_self(self, command: Any) -> None:
        self.inbox.append(command)

    def decide(self, flow: Flow[int, Begin | Go], command: Begin | Go) -> Plan | None:
        if isinstance(command, Begin):
            return Plan(events=(LoopEnded(reason="turn_limit", turns=1),))
        plan = Plan(events=(ExchangeClosed(reason="silent"),))
        if command is OWN and flow.version > 1:
            return None  # that is recorded already
        if command.through_session:
            return plan.sent_through(lambda carried: (KEY, StepOfSession(flow=flow.stream, carried=carried)))
        return plan

    def act(self, stream: str, state: int, recorded: Recorded) -> None:
        del stream, recorded
        self.acted.append(f"event {state}")

    def is_over(self, state: int) -> bool:
        del state
        return False

    # --- by hand

    def under_way(self) -> Begin | Go | None:
        return self._flow(STREAM).under_way

    def settle(self) -> None:
        """Let the log do what it is asked for, and the manager hear of it, until nobody has anything to do."""
        while self.log.step() or self.inbox:
            self.hear()

    def hear(self) -> None:
        while self.inbox:
            self.on_receive(self.inbox.popleft())


@pytest.fixture
def bench() -> Iterator[Bench]:
    with ReadsAtOnce(":memory:", threads=False) as log:
        bench = Bench(log)
        bench.on_receive(Begin())
        bench.settle()
        assert bench.acted == ["event 1"]
        yield bench


def asked_twice(bench: Bench) -> tuple[StepOfSession, StepOfSession]:
    """Have a step asked of a session that has lost what it was asked, and asked again."""
    bench.on_receive(THROUGH)
    bench.on_receive(SessionReadBack(key=KEY, lost=True))
    bench.settle()
    first, second = bench.asked
    return first, second


def recorded_by_session(bench: Bench, command: StepOfSession) -> tuple[Recorded, ...]:
    return bench.log.append_now(command.carried).recorded


@pytest.mark.clause("O4", "O5")
def test_an_answer_to_an_append_that_was_asked_for_twice_ends_no_other_command(bench: Bench) -> None:
    bench.on_receive(OWN)
    bench.on_receive(StepTaken(stream=STREAM, recorded=()))
    bench.hear()
    assert bench.under_way() is OWN, "it was decided anew, and asked for again"
    bench.on_receive(THROUGH)

    bench.settle()

    assert bench.under_way() is THROUGH, "nobody has answered this one"
    assert bench.log.head() == 2
    assert len(bench.asked) == 1
    bench.on_receive(
        StepTaken(stream=STREAM, recorded=recorded_by_session(bench, bench.asked[0]), ask=bench.asked[0].ask)
    )
    assert bench.acted[-1] == "event 3"
    assert bench.under_way() is None


@pytest.mark.clause("O4")
def test_a_refusal_of_what_was_asked_before_refuses_nothing_else(bench: Bench) -> None:
    first, second = asked_twice(bench)

    bench.on_receive(
        StepRefused(stream=STREAM, run_id="", code="not_visible", error="it is gone", ask=first.ask)
    )

    assert bench.under_way() is THROUGH
    bench.on_receive(
        StepRefused(stream=STREAM, run_id="", code="not_visible", error="it is gone", ask=second.ask)
    )
    assert len(bench.asked) == 3, "that was the answer: it is decided again"


@pytest.mark.clause("O4")
def test_a_step_that_was_taken_late_is_read_back(bench: Bench) -> None:
    first, second = asked_twice(bench)
    bench.resumed.clear()

    bench.on_receive(StepTaken(stream=STREAM, recorded=recorded_by_session(bench, first), ask=first.ask))
    bench.settle()

    assert bench.resumed == [STREAM], "as after a start: what the step leads to is done"
    third = bench.asked[-1]
    assert third is not second
    assert third.carried[0].expected == 2


@pytest.mark.clause("O4", "D7")
def test_a_session_that_reads_its_stream_again_is_not_told_again_what_it_was_told(bench: Bench) -> None:
    """Two flows whose steps a session could not record told it again and again, as fast as it could refuse them."""
    bench.on_receive(THROUGH)
    bench.on_receive(SessionReadBack(key=KEY, lost=False))
    bench.settle()

    assert len(bench.asked) == 1
    assert bench.under_way() is THROUGH
    assert bench.resumed == [STREAM], "it may not have told the end of a run"


@pytest.mark.clause("O5")
def test_what_is_told_again_and_again_while_the_store_is_away_is_asked_of_it_once(bench: Bench) -> None:
    """Each reading of a stream told a session to look at its log again: after a minute it asked a hundred times a second."""
    flow, away = bench._flow(STREAM), StoreUnavailable("it is away")

    for _ in range(3):
        flow.store_away(Told(OWN), away)
    flow.store_away(Told(THROUGH), away)

    assert flow.waiting() == (OWN, THROUGH)


def test_each_asking_is_another() -> None:
    assert Ask() != Ask()
