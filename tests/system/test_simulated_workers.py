"""Workers that die, answer late and answer twice, and a writer that crashes meanwhile, in a simulation of one thread (WORK-4, WORK-5)."""

import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem
from intersession_actors.outside.workers.desk import Desk
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events import facts
from support.stub_worker import StubWorker

ALIVE_S = 15
CONFIG: dict[str, Any] = {"agents": {"defaults": {"worker": True}, "list": [{"id": "a"}, {"id": "b"}]}}
DEEDS = ("answers", "answers", "twice", "dies", "late")


class Played:
    """A system, and workers that do what a seed says."""

    def __init__(self, store: str, seed: int) -> None:
        self.runtime = SimulatedRuntime(seed)
        self.chance = random.Random(seed)  # noqa: S311 - a simulation's
        self.system = SessionSystem(
            store, runtime=self.runtime, channels={"chat": MemoryChannel()}, config=CONFIG
        )
        self.ends = False
        for name in ("one", "two"):
            self.runtime.spawn(partial(self._work, StubWorker(self.system, "a", "b", name=name)))

    def _sleep(self, seconds: float) -> None:
        changed = self.runtime.threads.changed()
        with changed:
            changed.wait(seconds)

    def _work(self, worker: StubWorker) -> None:
        worker.announce()
        while not self.ends:
            worker.renew()
            for offer in worker.take(4, 0.0):
                self.runtime.spawn(partial(self._call, worker, offer))
            self._sleep(2.0)

    def _call(self, worker: StubWorker, offer: dict[str, Any]) -> None:
        deed = self.chance.choice(DEEDS)
        if deed == "dies":
            return
        self._sleep(ALIVE_S * 3 if deed == "late" else 1.0)
        for _ in range(2 if deed == "twice" else 1):
            worker.answer(offer, f"{deed} {offer['attempt']}")

    def ask(self, who: str) -> None:
        self.runtime.spawn(
            lambda: self.system.inbound(
                channel="chat", chat_id=who, sender=who, agent_id="a", text="ask", wait=0
            )
        )

    def judged(self) -> None:
        """Each run ends once, and so does each attempt; what is late is of an attempt that had ended."""
        ends, attempts = Counter[str](), Counter[tuple[str, int]]()
        for recorded in self.system.log.all():
            match recorded.event:
                case facts.RunCompleted() | facts.RunFailed() as end:
                    ends[end.run_id] += 1
                    attempts[end.run_id, end.attempt] += 1
                case facts.RunInterrupted() as cut:
                    attempts[cut.run_id, cut.attempt] += 1
                case facts.LateReplyDropped() as late:
                    assert attempts[late.run_id, late.attempt] == 1
                case _:
                    pass
        assert len(ends) == 6
        assert {*ends.values()} == {*attempts.values()} == {1}
        assert [one for one in self.system.log.work.standing() if not one.is_over] == []


def played(store: str, seed: int, *, crashes: bool) -> Counter[type[facts.Event]]:
    """Have six people ask, and return how often what was recorded."""
    play = Played(store, seed)
    for number in range(6):
        play.ask(f"u{number}")
    play.runtime.run_for(5 if crashes else 600)
    if crashes:
        play.system.log.crash()  # type: ignore[attr-defined]  # the logs of a runtime without threads have it
        play.runtime.crash()
        play = Played(store, seed + 100)
        play.runtime.run_for(600)
    with play.system:
        play.ends = True
        play.judged()
        return Counter(type(one.event) for one in play.system.log.all())


@pytest.mark.clause("WORK-5")
@pytest.mark.sqlite("a simulation has the clock of workers in its hand")
def test_each_run_ends_once_whatever_its_workers_do(tmp_path: Path) -> None:
    played(f"sqlite:///{tmp_path}/log.db", 1, crashes=True)


@pytest.mark.ci
@pytest.mark.clause("WORK-4", "WORK-5")
@pytest.mark.sqlite("a simulation has the clock of workers in its hand")
@pytest.mark.parametrize("crashes", [False, True])
def test_it_does_for_many_seeds(tmp_path: Path, *, crashes: bool) -> None:
    seen = Counter[type[facts.Event]]()
    for seed in range(10):
        seen += played(f"sqlite:///{tmp_path}/{seed}.db", seed, crashes=crashes)
    for kind in (facts.RunCompleted, facts.RunFailed, facts.RunInterrupted, facts.LateReplyDropped):
        assert seen[kind], kind


@pytest.mark.clause("WORK-5")
@pytest.mark.sqlite("a simulation has the clock of workers in its hand")
def test_it_would_notice_a_writer_that_counts_what_came_late(tmp_path: Path) -> None:
    """A planted mistake: calls of workers that are silent never lapse."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Desk, "_lapse", lambda *_: None)
        with pytest.raises(AssertionError):
            played(f"sqlite:///{tmp_path}/log.db", 1, crashes=False)
