"""What is used within the last hour and day, by minutes, and counted once, whether it was read or heard of first (LIMIT-1)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.owners.chains.spending import SpendingLedger, Spent, _Account
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import RunCompleted, RunQueued, Usage
from intersession_events.log.recorded import Recorded
from support.story import Story

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
STEPS = st.lists(st.tuples(st.integers(-2 * MINUTE, HOUR * 5), st.integers(0, 9)), max_size=60)


@given(steps=STEPS, window=st.sampled_from([HOUR, DAY]))
def test_all_that_was_used_in_the_minutes_of_a_window_counts(
    steps: list[tuple[int, int]], window: int
) -> None:
    account, now, used = _Account(), DAY, list[tuple[int, int]]()
    for step, tokens in steps:
        now += step
        # A clock that was set back takes nothing back.
        minute = max([now // MINUTE, *(at for at, _ in used)])
        account.add(now, Spent(1, tokens, 0))
        used.append((minute, tokens))

    within = [tokens for minute, tokens in used if minute > (now - window) // MINUTE]
    assert account.since(now - window) == Spent(len(within), sum(within), 0)
    assert len(account.minutes) <= DAY // MINUTE + 1


class Bench:
    """A ledger that hears of commits when a test says so."""

    def __init__(self, log_url: str) -> None:
        self.story = Story(log_url)
        self.heard: list[Recorded] = []
        self.meanwhile: list[str] = []
        """Runs that are recorded as the log begins to be read."""
        self.is_away = False
        """Whether the store goes away in the middle of a reading."""
        self.tell: Callable[[], object] = lambda: None
        self.ledger = SpendingLedger(self, lambda _: 0, lambda _, sender: sender)

    def on_committed(
        self, listener: Callable[[Sequence[Recorded]], object], of: Any = None, *, first: bool = False
    ) -> Callable[[], None]:
        self.tell = lambda: listener(self.heard)
        return self.story.log.on_committed(self.heard.extend, of, first=first)

    def wait_for(self, position: int, *, timeout: float) -> bool:
        return self.story.log.wait_for(position, timeout=timeout)

    def all(self, **asked: Any) -> Iterator[Recorded]:
        while self.meanwhile:
            self.runs(self.meanwhile.pop())
        for recorded in self.story.log.all(**asked):
            yield recorded
            if self.is_away:
                raise StoreUnavailable("the disk is away")

    def runs(self, run_id: str) -> None:
        """Record a run of the agent main that uses 10 tokens."""
        stream, now = "session:agent:main:main", self.story.clock.now
        queued = RunQueued(run_id=run_id, session_id="s", step="message", answers="m")
        used = RunCompleted(run_id=run_id, attempt=1, usage=Usage(input=10))
        self.story.put(stream, queued, used, time=now, correlation=run_id)

    def spent(self) -> Spent:
        """Return what main has used, as the ledger has it."""
        self.ledger.left({}, self.story.clock.now)
        return self.ledger._accounts["agent", "main"].since(0)


@pytest.fixture
def bench(log_url: str) -> Iterator[Bench]:
    made = Bench(log_url)
    yield made
    made.ledger.close()
    made.story.close()


@pytest.mark.clause("LIMIT-1")
def test_what_was_read_before_the_ledger_hears_of_it_counts_once(bench: Bench) -> None:
    """A database shows a commit to readers before its writer tells anybody: it was counted again when that came."""
    bench.runs("before")
    bench.meanwhile.append("meanwhile")
    assert bench.spent() == Spent(runs=2, tokens=20)
    bench.runs("after")
    bench.tell()

    assert bench.spent() == Spent(runs=3, tokens=30)


@pytest.mark.clause("LIMIT-1")
def test_a_reading_that_failed_half_way_counts_nothing_twice(bench: Bench) -> None:
    bench.runs("once")
    bench.is_away = True
    with pytest.raises(StoreUnavailable):
        bench.spent()
    bench.is_away = False

    assert bench.spent() == Spent(runs=1, tokens=10)
