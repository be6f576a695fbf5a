"""Carries a fork on to its end, as a start after a crash does, and stops it where a recording ends (FORK-4, FORK-7)."""

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import Literal

import msgspec

from intersession_actors.agents import Divergence, OnDivergence, Turn
from intersession_actors.forking.outcomes import Outcome, outcome_of
from intersession_actors.forking.standing import HeldAt, Standing, standing
from intersession_actors.gate import invalid
from intersession_actors.service import Service

_LOOK_AGAIN_S = 0.05

HowItStands = Literal["ended", "held", "waits", "imported", "diverged", "timeout"]


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


def stopping_of(stopping: Stopping | None) -> Stopping | None:
    """Return what recorded agents do where their recording ends.

    Raises:
        ToolRefused: it is none of it.
    """
    if stopping is None or isinstance(stopping, Stopping):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        return stopping
    raise invalid("stopping", f"it is no `Stopping` but {type(stopping).__name__}, `fork` hands it in")


class _Never:
    """An answer that does not come. Unlike a coroutine it may be left unawaited, where the fork is closed before its loop begins."""

    def __await__(self) -> Generator[None, None, str]:
        yield from asyncio.Event().wait().__await__()
        raise RuntimeError("nobody sets it")


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """How far a fork was carried on.

    `missing` are the agents that it waits for, `held` is where it waits for a release, `set_aside` what went wrong and does not
    go on, `imported` what was under way where an import was cut, of which the log has no run to go on with. `divergence` is where a
    recording ended.
    """

    state: HowItStands
    outcome: Outcome
    missing: tuple[str, ...] = ()
    held: tuple[HeldAt, ...] = ()
    set_aside: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()
    divergence: Divergence | None = None


def carry_on(
    service: Service,
    run: str,
    *,
    stopping: Stopping | None = None,
    timeout: float | None = None,
    ending: Callable[[], bool] | None = None,
) -> Carried:
    """Wait until what was forked has ended, or goes on no more. It blocks; the fork's system stays open.

    `timeout` in seconds; None is no limit. Where `ending` says so, nobody waits any longer.
    """
    until = None if timeout is None else service.clock.monotonic() + timeout
    while True:
        head = service.log.head()
        if stopping is not None and stopping.has_stopped:
            return _carried(service, run, "diverged", stopping)
        stands = standing(service)
        if not stands.goes_on and service.log.head() == head:
            return _carried(service, run, _how(stands), stopping, stands)
        if (until is not None and service.clock.monotonic() >= until) or (ending is not None and ending()):
            return _carried(service, run, "timeout", stopping)
        service.log.wait_for(head + 1, timeout=_LOOK_AGAIN_S)


def _how(stands: Standing) -> HowItStands:
    if stands.held:
        return "held"
    if stands.missing or stands.set_aside:
        return "waits"
    return "imported" if stands.imported else "ended"


def _carried(
    service: Service,
    run: str,
    state: HowItStands,
    stopping: Stopping | None,
    stands: Standing | None = None,
) -> Carried:
    return Carried(
        state=state,
        outcome=outcome_of(service.reader, run),
        missing=() if stands is None else stands.missing,
        held=() if stands is None else stands.held,
        set_aside=() if stands is None else stands.set_aside,
        imported=() if stands is None else stands.imported,
        divergence=None if stopping is None else stopping.found,
    )
