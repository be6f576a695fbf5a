"""Carries a fork on to its end, as a start after a crash does, and stops it where a recording ends (FORK-4, FORK-7)."""

import asyncio
import threading
from collections.abc import Generator
from typing import Literal

import msgspec

from intersession_actors.agents import Divergence, OnDivergence, Turn
from intersession_actors.forking.outcomes import Outcome, is_at_rest, missing_agents, outcome_of
from intersession_actors.service import Service

_LOOK_AGAIN_S = 0.05

HowItStands = Literal["ended", "waits", "diverged", "timeout"]


class Stopping:
    """What a recorded agent does where the recording ends: it answers nothing more, so that the fork stands still there.

    `otherwise` asks somebody else instead, who goes on from there. `found` is the first divergence.
    """

    def __init__(self, otherwise: OnDivergence | None = None) -> None:
        self._otherwise = otherwise
        self._lock = threading.Lock()
        self.found: Divergence | None = None

    @property
    def has_stopped(self) -> bool:
        """Whether a recording has ended, and nobody goes on."""
        return self.found is not None and self._otherwise is None

    def __call__(self, turn: Turn, divergence: Divergence) -> object:
        """Answer a turn that the recording does not answer."""
        with self._lock:
            self.found = self.found or divergence
        return _Never() if self._otherwise is None else self._otherwise(turn, divergence)


class _Never:
    """An answer that does not come. Unlike a coroutine it may be left unawaited, where the fork is closed before its loop begins."""

    def __await__(self) -> Generator[None, None, str]:
        yield from asyncio.Event().wait().__await__()
        raise RuntimeError("nobody sets it")


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """How far a fork was carried on. `missing` are the agents that it waits for, `divergence` is where a recording ended."""

    state: HowItStands
    outcome: Outcome
    missing: tuple[str, ...] = ()
    divergence: Divergence | None = None


def carry_on(
    service: Service, run: str, *, stopping: Stopping | None = None, timeout: float | None = None
) -> Carried:
    """Wait until what was forked has ended, or goes on no more. It blocks; the fork's system stays open.

    `timeout` in seconds; None is no limit.
    """
    agents, reader = service.world.agents, service.reader

    def has_agent(key: str) -> bool:
        return agents.has(service.world.agent_of(key))

    until = None if timeout is None else service.clock.monotonic() + timeout
    while True:
        head = service.log.head()
        stopped = stopping is not None and stopping.has_stopped
        if stopped or is_at_rest(reader, has_agent):
            break
        if until is not None and service.clock.monotonic() >= until:
            return _carried(service, run, "timeout", (), stopping)
        service.log.wait_for(head + 1, timeout=_LOOK_AGAIN_S)
    missing = () if stopped else missing_agents(reader, has_agent)
    return _carried(
        service, run, "diverged" if stopped else "waits" if missing else "ended", missing, stopping
    )


def _carried(
    service: Service, run: str, state: HowItStands, missing: tuple[str, ...], stopping: Stopping | None
) -> Carried:
    return Carried(
        state=state,
        outcome=outcome_of(service.reader, run),
        missing=missing,
        divergence=None if stopping is None else stopping.found,
    )
