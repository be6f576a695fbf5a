"""What a flow is told late, after it was read again, is not taken for the answer to what was asked since."""

from collections.abc import Iterator
from queue import Queue
from typing import Any

import pytest
from msgspec.structs import replace

from intersession_actors.owners.flows.process_manager import Flow, ProcessManager
from intersession_actors.owners.streams.commands import (
    Appended,
    Ask,
    BeginsFlow,
    FlowCommand,
    SessionReadBack,
    Step,
    StepRefused,
    StepTaken,
    StreamLoaded,
)
from intersession_actors.owners.streams.effects import (
    Append,
    AskStoreAgain,
    CommandOutcome,
    Effect,
    Load,
    Loaded,
    Plan,
    ReadBack,
    TellSession,
)
from intersession_actors.owners.streams.owner import Owner
from intersession_actors.rules.config.config import Config
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import ExchangeClosed, LoopEnded
from intersession_events.log.recorded import Conflict, Recorded, StreamAppend
from intersession_events.stores.sqlite.log import SqliteLog
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


class ActedOn(Effect, frozen=True):
    recorded: Recorded


def acted_on(_state: int, recorded: Recorded, _limits: Config) -> tuple[Effect, ...]:
    return (ActedOn(recorded),)


class Bench(ProcessManager[int, Begin | Go, None]):
    """A manager whose effects are looked at and not done; what they ask for is answered by hand."""

    def __init__(self, log: SqliteLog) -> None:
        super().__init__(a_world(log, Queue()), counting(Begin | Go, acted_on))
        self.log = log
        self.done: list[Any] = []

    def do(self, owner: Owner[int, Begin | Go]) -> None:
        while owner.effects or (owner.waiting and not owner.is_busy):
            if owner.effects:
                self.done.append(owner.effects.pop(0))
            else:
                owner.decide_next()
        if not owner.is_busy:
            self.at_rest(owner)

    def decide(self, flow: Flow[int, Begin | Go], command: Begin | Go) -> Plan | None:
        if isinstance(command, Begin):
            return Plan(events=(LoopEnded(reason="turn_limit", turns=1),))
        plan = Plan(events=(ExchangeClosed(reason="silent"),))
        if command is OWN and flow.version > 1:
            return None  # that is recorded already
        if command.through_session:
            return replace(
                plan, through=lambda carried: (KEY, StepOfSession(flow=flow.stream, carried=carried))
            )
        return plan

    def is_over(self, state: int) -> bool:
        del state
        return False

    # --- by hand

    def under_way(self) -> Begin | Go | None:
        return self._flow(STREAM).under_way

    def told(self, message: object) -> list[Any]:
        """Tell the manager something, and return what is to be done."""
        self.done = []
        self.on_receive(message)
        return self.done

    def stored(self, append: Append) -> list[Any]:
        outcome = self.log.append_now(append.asked.appends)
        return self.told(Appended(stream=STREAM, ask=append.ask, outcome=outcome))

    def read(self, load: Load) -> list[Any]:
        return self.told(StreamLoaded(stream=STREAM, ask=load.ask, recorded=self.log.stream(STREAM)))


@pytest.fixture
def bench() -> Iterator[Bench]:
    with SqliteLog(":memory:") as log:
        bench = Bench(log)
        (append,) = bench.told(Begin())
        bench.stored(append)
        yield bench


def asked_twice(bench: Bench) -> tuple[StepOfSession, StepOfSession]:
    """Have a step asked of a session that has lost what it was asked, and asked again."""
    (first,) = bench.told(THROUGH)
    load, read_back = bench.told(SessionReadBack(key=KEY, lost=True))
    assert read_back == ReadBack()
    loaded, second = bench.read(load)
    assert loaded == Loaded()
    return first.command, second.command


def recorded_by_session(bench: Bench, command: StepOfSession) -> tuple[Recorded, ...]:
    return bench.log.append_now(command.carried).recorded


@pytest.mark.clause("O4", "O5")
def test_an_answer_to_an_append_that_was_asked_for_twice_ends_no_other_command(bench: Bench) -> None:
    (first,) = bench.told(OWN)
    load, _ = bench.told(StepTaken(stream=STREAM, recorded=()))
    _, second = bench.read(load)
    assert bench.under_way() is OWN, "it was decided anew, and asked for again"
    assert bench.told(THROUGH) == []

    load, _ = bench.stored(first)
    _, told = bench.read(load)
    late = Appended(stream=STREAM, ask=second.ask, outcome=Conflict(stream=STREAM, expected=1, actual=2))
    assert bench.told(late) == []

    assert bench.under_way() is THROUGH, "nobody has answered this one"
    assert told == TellSession(KEY, told.command)
    recorded = recorded_by_session(bench, told.command)
    assert bench.told(StepTaken(stream=STREAM, recorded=recorded, ask=told.command.ask)) == [
        ActedOn(*recorded)
    ]
    assert bench.under_way() is None


@pytest.mark.clause("O4")
def test_a_refusal_of_what_was_asked_before_refuses_nothing_else(bench: Bench) -> None:
    first, second = asked_twice(bench)
    refused = StepRefused(stream=STREAM, run_id="", code="not_visible", error="it is gone", ask=first.ask)

    assert bench.told(refused) == []
    assert bench.under_way() is THROUGH
    refused = StepRefused(stream=STREAM, run_id="", code="not_visible", error="it is gone", ask=second.ask)
    (third,) = bench.told(refused)
    assert isinstance(third, TellSession), "that was the answer: it is decided again"


@pytest.mark.clause("O4")
def test_a_step_that_was_taken_late_is_read_back(bench: Bench) -> None:
    first, second = asked_twice(bench)

    late = StepTaken(stream=STREAM, recorded=recorded_by_session(bench, first), ask=first.ask)
    load, read_back = bench.told(late)

    assert read_back == ReadBack(), "as after a start: what the step leads to is done"
    _, third = bench.read(load)
    assert third.command is not second
    assert third.command.carried[0].expected == 2


@pytest.mark.clause("O4", "D7")
def test_a_session_that_reads_its_stream_again_is_not_told_again_what_it_was_told(bench: Bench) -> None:
    """Two flows whose steps a session could not record told it again and again, as fast as it could refuse them."""
    bench.told(THROUGH)

    assert bench.told(SessionReadBack(key=KEY, lost=False)) == [ReadBack()], (
        "it may not have told a run's end"
    )
    assert bench.under_way() is THROUGH


@pytest.mark.clause("O5")
def test_what_is_told_again_and_again_while_the_store_is_away_is_asked_of_it_once(bench: Bench) -> None:
    """Each reading of a stream told a session to look at its log again: after a minute it asked a hundred times a second."""
    flow, away = bench._flow(STREAM), StoreUnavailable("it is away")

    for _ in range(3):
        flow.store_away(CommandOutcome(OWN), away)
    flow.store_away(CommandOutcome(THROUGH), away)

    assert flow.commands() == (OWN, THROUGH)
    assert [*flow.effects] == [AskStoreAgain(1), AskStoreAgain(2)]


@pytest.mark.clause("O5")
def test_what_is_asked_of_the_store_again_is_what_was_decided_last(bench: Bench) -> None:
    """A session's look at its log was asked for again as it had been for a run before: the run of now stayed open."""
    (append,) = bench.told(OWN)
    (before,), away = append.asked.appends, StoreUnavailable("it is away")
    later = StreamAppend(stream=STREAM, expected=before.expected + 1, drafts=before.drafts)
    last = replace(append.asked, appends=(later,))
    flow = bench._flow(STREAM)

    flow.store_away(CommandOutcome(OWN, 1.0, append.asked), away)
    flow.store_away(CommandOutcome(OWN, 5.0, last), away)

    assert [*flow.put_off.values()] == [CommandOutcome(OWN, 1.0, last)], (
        "it has waited since it was first refused"
    )


def test_each_asking_is_another() -> None:
    assert Ask() != Ask()
