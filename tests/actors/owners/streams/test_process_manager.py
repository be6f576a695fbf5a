"""A process manager goes on with its other flows when one of them breaks, and sets that one aside when it breaks again and again."""

from collections.abc import Iterator
from queue import Queue

import pytest

from intersession_actors.owners.flows.process_manager import Flow, ProcessManager
from intersession_actors.owners.streams.commands import Accepted, BeginsFlow, FlowCommand, Refused
from intersession_actors.owners.streams.effects import Effect, Plan
from intersession_actors.owners.streams.owner import Owner
from intersession_actors.owners.streams.world import World
from intersession_actors.running.runtime.actor import Ref
from intersession_actors.running.runtime.runtime import ThreadingRuntime
from intersession_events.facts import ExchangeClosed, LoopEnded
from intersession_events.log.log import HostLog
from intersession_events.stores.sqlite.log import SqliteLog
from support.flows import a_world, counting

WAIT = 20.0


class Begin(BeginsFlow, frozen=True, kw_only=True):
    name: str

    @property
    def stream(self) -> str:
        return f"exchange:{self.name}"


class Go(FlowCommand, frozen=True, kw_only=True):
    breaks: bool = False


GoCommand = Begin | Go


class Counted(Effect, frozen=True):
    events: int


class Counter(ProcessManager[int, GoCommand, None]):
    """Counts the events of each flow, and reports what it acts on."""

    def __init__(self, world: World, acted: "Queue[tuple[str, int]]", tried: list[str]) -> None:
        super().__init__(world, counting(Begin | Go, lambda state, _event, _limits: (Counted(state),)))
        self._acted = acted
        self._tried = tried

    def decide(self, flow: Flow[int, GoCommand], command: GoCommand) -> Plan | Refused | None:
        if isinstance(command, Begin):
            return Plan(events=(LoopEnded(reason="turn_limit", turns=1),))
        if command.breaks:
            self._tried.append(flow.stream)
            raise ZeroDivisionError("the rule is broken")
        return Plan(events=(ExchangeClosed(reason="silent"),))

    def act(self, owner: Owner[int, GoCommand], effect: Effect) -> None:
        if isinstance(effect, Counted):
            self._acted.put((owner.stream, effect.events))
        else:
            super().act(owner, effect)

    def is_over(self, state: int) -> bool:
        return state > 2


class Bench:
    """A manager on a real log, and what comes out of it."""

    def __init__(self, log: HostLog, runtime: ThreadingRuntime) -> None:
        self.acted: Queue[tuple[str, int]] = Queue()
        self.aside: Queue[tuple[str, str]] = Queue()
        self.tried: list[str] = []
        self.failures: list[BaseException] = []
        self.ref: Ref = runtime.start(
            Counter,
            a_world(log, self.aside),
            self.acted,
            self.tried,
            name="exchange",
            on_failure=lambda failure: self.failures.append(failure.error),
        )


@pytest.fixture
def bench() -> Iterator[Bench]:
    runtime = ThreadingRuntime()
    with SqliteLog(":memory:") as log:
        yield Bench(log, runtime)
        runtime.stop(WAIT)


def begun(bench: Bench, *names: str) -> None:
    for name in names:
        bench.ref.tell(Begin(name=name))
        assert bench.acted.get(timeout=WAIT) == (f"exchange:{name}", 1)


@pytest.mark.clause("O9")
def test_a_flow_that_breaks_again_and_again_is_set_aside_alone(bench: Bench) -> None:
    begun(bench, "bad", "good")

    bench.ref.tell(Go(stream="exchange:bad", breaks=True))
    stream, reason = bench.aside.get(timeout=WAIT)
    bench.ref.tell(Go(stream="exchange:good"))

    assert bench.acted.get(timeout=WAIT) == ("exchange:good", 2)
    assert (stream, reason) == ("exchange:bad", "ZeroDivisionError: the rule is broken")
    assert bench.tried == ["exchange:bad"] * 4, "it was tried again three times"
    assert bench.failures == [], "its manager did not fail"


@pytest.mark.clause("O9")
def test_what_is_told_to_a_flow_that_was_set_aside_is_refused(bench: Bench) -> None:
    begun(bench, "bad")
    bench.ref.tell(Go(stream="exchange:bad", breaks=True))
    bench.aside.get(timeout=WAIT)
    answers: Queue[Refused] = Queue()

    bench.ref.tell(Begin(name="bad", answer=answers.put))

    refused = answers.get(timeout=WAIT)
    assert refused.code == "internal"
    assert "set aside until the next start" in refused.error


@pytest.mark.clause("O5", "D6")
def test_who_waits_hears_that_it_is_durable_whatever_fails_next(bench: Bench) -> None:
    """Before: with no memory left to go on, the caller waited for half a minute and was told to try again."""
    answers: Queue[Accepted | Refused] = Queue()

    bench.ref.tell(Begin(name="huge", answer=answers.put))

    assert isinstance(answers.get(timeout=WAIT), Accepted)
