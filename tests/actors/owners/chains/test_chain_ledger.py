"""The ledger of causal chains: what is reserved and what is recorded is counted once, in one place (LOOP-5)."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.owners.chains.ledger import ChainLedger, ChainUnread, RunUse
from intersession_actors.rules.policy.chain import Spent
from intersession_events.facts import (
    Budget,
    Event,
    ExchangeAccepted,
    ExchangeClosed,
    Limits,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunQueued,
    Usage,
)
from intersession_events.log.recorded import Draft, StreamAppend
from intersession_projections.views.run_outcomes.runs import Runs
from support.story import Story

STREAM, FLOW = "session:agent:main:main", "exchange:x"
ACCEPTED = ExchangeAccepted(
    exchange_id="x", run_id="a", target="agent:ops:main", target_session_id="s", message_id="m", message="hi"
)


def queued(run_id: str) -> RunQueued:
    return RunQueued(run_id=run_id, session_id="s", step="message", answers="m")


def completed(run_id: str, **usage: int) -> RunCompleted:
    return RunCompleted(run_id=run_id, attempt=1, usage=Usage(**usage))


def budget(**limits: int) -> Budget:
    return Budget(root="root", limits=Limits(**{"runs": 0, "wall_seconds": 0, **limits}))


class Bench:
    """A ledger beside a real log."""

    def __init__(self, path: Path | str) -> None:
        self.story = Story(path)
        self.ledger = self.another()

    def another(self) -> ChainLedger:
        """Return a ledger that knows what is in the log, as after a restart."""
        runs = Runs(self.story.log)
        return ChainLedger(self.story.log, lambda root: [RunUse(*run) for run in runs.of_chain(root)])

    def put(self, event: Event, stream: str = STREAM) -> None:
        self.story.put(stream, event, correlation="root")

    def reserve(self, run_id: str, *, by: str | None = None, **limits: int) -> str | None:
        tripped = self.ledger.after_reading(
            lambda: self.ledger.reserve(budget(**limits), run_id, 0, by=by or run_id)
        )
        return None if tripped is None else tripped.limit

    def spent(self, ledger: ChainLedger | None = None, *, besides: str = "") -> Spent:
        asked = ledger or self.ledger
        return asked.after_reading(lambda: asked.spent("root", besides=besides))


@pytest.fixture
def bench(log_url: str) -> Iterator[Bench]:
    made = Bench(log_url)
    yield made
    made.story.close()


@pytest.mark.clause("LOOP-5")
def test_what_is_reserved_counts_before_it_is_recorded_and_once_after_that(bench: Bench) -> None:
    assert bench.reserve("root") is None
    assert bench.reserve("a", runs=2) is None
    assert bench.reserve("b", runs=2) == "run_limit"
    bench.put(queued("root"))
    bench.put(queued("a"))

    assert bench.spent() == Spent(runs=2)
    assert bench.reserve("a", runs=2) is None, "it is there already"
    assert bench.reserve("b", runs=2) == "run_limit"


@pytest.mark.clause("LOOP-5")
def test_what_is_given_back_can_be_had_by_another(bench: Bench) -> None:
    bench.put(queued("root"))
    assert bench.reserve("a", runs=2) is None

    bench.ledger.release("root", "another", by="a")
    assert bench.reserve("b", runs=2) == "run_limit"
    bench.ledger.release("root", "a", by="a")

    assert bench.reserve("b", runs=2) is None


@pytest.mark.clause("LOOP-5")
def test_a_flow_that_decides_again_has_reserved_one_run(bench: Bench) -> None:
    bench.put(queued("root"))
    bench.put(ACCEPTED, FLOW)
    assert bench.reserve("turn", by=FLOW, runs=2) is None

    assert bench.spent(besides=FLOW) == Spent(runs=1)
    assert bench.reserve("announce", by=FLOW, runs=2) is None
    assert bench.spent() == Spent(runs=2)
    bench.put(ExchangeClosed(reason="silent"), FLOW)

    assert bench.spent() == Spent(runs=1), "a flow that is over asks for nothing"


@pytest.mark.clause("LOOP-5")
def test_runs_that_have_ended_count_what_they_used_and_never_less_than_nothing(bench: Bench) -> None:
    for run_id in ("root", "a", "b"):
        bench.put(queued(run_id))
    bench.put(completed("a", input=3, output=4, cost_micros=5))
    bench.put(RunFailed(run_id="b", attempt=1, code="backend", error="no"))

    assert bench.spent() == Spent(runs=3, tokens=7, cost_micros=5)
    assert bench.reserve("c", tokens=7) == "token_limit"
    bench.put(completed("root", input=-9, cost_micros=-9))
    assert bench.reserve("c", tokens=7) == "token_limit", "finding A20: usage below zero made room"
    assert bench.reserve("c", cost_micros=5) == "cost_limit"


@pytest.mark.clause("LOOP-5", "L2")
def test_runs_of_others_that_are_stopped_in_the_same_append_are_none_of_the_chain(bench: Bench) -> None:
    bench.put(queued("root"))
    for run_id in ("of another chain", "of a third one"):
        bench.put(RunAborted(run_id=run_id, attempt=0, by="operator"))

    assert bench.spent() == bench.spent(bench.another()) == Spent(runs=1)


@pytest.mark.clause("LOOP-5", "L2")
@pytest.mark.parametrize("correlation", ["another", None])
def test_a_run_that_is_stopped_in_an_append_of_another_chain_has_ended_in_its_own(
    bench: Bench, correlation: str | None
) -> None:
    """Who stops all runs of a session, or archives it, says so once, in the chain of the run under way or of none."""
    bench.put(queued("root"))
    bench.story.put(STREAM, RunAborted(run_id="root", attempt=0, by="operator"), correlation=correlation)

    assert len(bench.ledger._accounts) == 0
    assert len(bench.ledger._chain_of) == 0
    assert bench.spent() == bench.spent(bench.another()) == Spent(runs=1)


@pytest.mark.clause("LOOP-5", "L2")
def test_after_a_restart_the_log_says_what_was_used(bench: Bench) -> None:
    for event in (queued("root"), queued("a"), completed("a", input=3), queued("b")):
        bench.put(event)
    bench.reserve("lost with the process")

    bench.ledger = bench.another()

    assert bench.spent() == Spent(runs=3, tokens=3)
    bench.ledger.after_reading(lambda: bench.ledger.hold("root", "accepted", by="spawn:y"))
    assert bench.reserve("c", runs=4) == "run_limit"


@pytest.mark.clause("LOOP-5")
def test_nothing_is_kept_of_a_chain_that_is_over_and_it_is_known_all_the_same(bench: Bench) -> None:
    for event in (queued("root"), queued("a"), completed("a")):
        bench.put(event)
    bench.put(ACCEPTED, FLOW)
    assert len(bench.ledger._accounts) == 1
    bench.put(completed("root"))
    assert len(bench.ledger._accounts) == 1, "the exchange can go on with it"
    bench.put(ExchangeClosed(reason="silent"), FLOW)

    assert len(bench.ledger._accounts) == 0
    assert bench.reserve("late", runs=2) == "run_limit"
    assert len(bench.ledger._accounts) == 1, "whoever had it read may ask again"
    for number in range(256):
        bench.ledger.read(f"another {number}")
    assert "root" not in bench.ledger._accounts
    assert len(bench.ledger._accounts) == 256


@pytest.mark.clause("LOOP-5", "L4")
def test_a_chain_that_is_not_known_is_read_while_the_ledger_serves_the_others(bench: Bench) -> None:
    for event in (queued("root"), queued("a"), completed("a", input=3)):
        bench.put(event)
    reading, go_on = threading.Event(), threading.Event()
    runs = Runs(bench.story.log)

    def held(root: str) -> list[RunUse]:
        found = [RunUse(*run) for run in runs.of_chain(root)]
        reading.set()
        assert go_on.wait(20)
        return found

    bench.ledger.close()
    bench.ledger = ledger = ChainLedger(bench.story.log, held)
    with pytest.raises(ChainUnread) as unread:
        ledger.spent("root")
    reader = threading.Thread(target=ledger.read, args=(unread.value.root,))
    reader.start()
    assert reading.wait(20)

    # None of this waits for the reading, and what is recorded meanwhile is not missed, nor counted twice.
    assert ledger.reserve(Budget(root="of its own"), "of its own", 0, by="of its own") is None
    bench.put(completed("root", input=4))
    bench.put(queued("b"))
    bench.put(completed("b", input=5))
    go_on.set()
    reader.join(20)

    assert ledger.spent("root") == Spent(runs=3, tokens=12)
    assert bench.spent(bench.another()) == Spent(runs=3, tokens=12)


class Between:
    """A lock behind whose next release something is done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.then: list[Callable[[], object]] = []

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if self.then:
            self.then.pop()()


@pytest.mark.clause("LOOP-5")
def test_what_is_recorded_just_when_a_chain_was_read_is_counted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: what came between the end of the reading and the opening of the account was not."""
    bench.put(queued("root"))
    runs, lock = Runs(bench.story.log), Between()

    def read(root: str) -> list[RunUse]:
        found = [RunUse(*run) for run in runs.of_chain(root)]
        lock.then.append(lambda: bench.put(queued("a")))
        return found

    ledger = ChainLedger(bench.story.log, read)
    monkeypatch.setattr(ledger, "_lock", lock)
    ledger.read("root")

    assert ledger.spent("root") == Spent(runs=2)
    ledger.close()


@pytest.mark.clause("LOOP-5")
def test_a_run_counts_before_whoever_had_it_recorded_is_told(bench: Bench) -> None:
    """An actor that fails then has told nobody, and one that goes on at once knows of it."""
    bench.put(queued("root"))
    counted: SimpleQueue[int] = SimpleQueue()
    draft = Draft(event=queued("untold"), id="untold", time=1, correlation="root")

    bench.story.log.append(
        [StreamAppend(stream=STREAM, expected=1, drafts=(draft,))],
        lambda _: counted.put(bench.ledger.spent("root").runs),
    )

    assert counted.get(timeout=20) == 2
    assert bench.reserve("c", runs=2) == "run_limit"


@pytest.mark.clause("LOOP-5")
@given(limit=st.integers(1, 4), wanted=st.integers(2, 6))
def test_those_who_reserve_at_the_same_moment_get_no_more_than_there_is(limit: int, wanted: int) -> None:
    bench = Bench(":memory:")
    bench.put(queued("root"))
    ready, got = threading.Barrier(wanted), list[str]()

    def reserve(run_id: str) -> None:
        ready.wait(20)
        if bench.reserve(run_id, runs=limit) is None:
            got.append(run_id)

    threads = [threading.Thread(target=reserve, args=(f"r{number}",)) for number in range(wanted)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.story.close()

    assert len(got) == min(limit - 1, wanted)
