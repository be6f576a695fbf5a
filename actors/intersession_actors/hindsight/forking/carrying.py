"""Continues a fork to its end, like a start after a crash, and stops it where a recording ends (FORK-4, FORK-7)."""

import asyncio
import threading
from collections.abc import Callable, Generator, Iterable
from typing import Final, Literal

import msgspec

from intersession_actors.calls.service.service import Service
from intersession_actors.hindsight.forking.outcomes import Outcome, outcome_of
from intersession_actors.hindsight.forking.repeating import RecordedOrder, RecordedReleases
from intersession_actors.hindsight.forking.standing import HeldAt, Standing, standing
from intersession_actors.outside.agents.recorded import Divergence, OnDivergence, RecordedCall
from intersession_actors.outside.agents.recording import RecordedAttempt
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.ids import session_stream
from intersession_events.facts import RunStarted
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend

STREAM = "log"
_LOOK_AGAIN_S = 0.05
_UNDER_WAY: Final = Standing(goes_on=True)

HowItStands = Literal["ended", "held", "waits", "imported", "diverged", "timeout"]


class Stopping:
    """A recorded agent's action where the recording ends: it gives no answer, so that the fork stands still there.

    `otherwise` asks somebody else instead, who goes on from there. `found` is where the fork stands still; where it goes on, the
    first place where it left the recording. A fork records where it left it, before anybody goes on or is told.
    """

    def __init__(
        self,
        otherwise: OnDivergence | None = None,
        releases: RecordedReleases | None = None,
        order: RecordedOrder | None = None,
    ) -> None:
        self._otherwise = otherwise
        self._releases = releases
        self._order = order
        self._lock = threading.Lock()
        self._service: Service | None = None
        self._recording: Callable[[Divergence], None] | None = None
        self.found: Divergence | None = None

    @property
    def has_stopped(self) -> bool:
        """Whether a recording has ended, and the fork stands still."""
        return self.found is not None and not self.found.goes_on

    def lets_go_on(self, service: Service, held: Iterable[HeldAt]) -> bool:
        """Release what is held as in the recording; False if it has no such release."""
        if self._releases is None:
            return False
        flows, held = service.reader.flows, tuple(held)
        if any(self._releases.release_call(service, one.hold) for one in held if one.hold is not None):
            return True
        exchanges = [
            flows.exchange(flows.exchange_of_run(one.run) or "") for one in held if one.step != "call"
        ]
        return any(self._releases.release(service, one) for one in exchanges if one is not None and one.held)

    def opened_on(self, service: Service) -> None:
        """Set up a fork: record where it leaves the recording, and order its concurrent steps like the recording."""
        self._service = service
        self._recording = leaving_recorded(service)

    def waits(self, attempt: RecordedAttempt, call: RecordedCall | None) -> None:
        """Wait until an attempt may answer, or call, in the recorded order (see `RecordedOrder`); only while it follows its recording."""
        service, order = self._service, self._order
        if service is None or order is None or self._is_off(service):
            return
        order.wait(service, attempt, call, lambda: self._is_off(service))

    def _is_off(self, service: Service) -> bool:
        return self.found is not None or service.world.agents.closing

    def __call__(self, turn: Turn, divergence: Divergence) -> object:
        """Answer a turn that the recording does not answer."""
        if self._otherwise is None:
            self._note(divergence)
            return _Never()
        if self.found is None:  # from there on all is somebody else's
            self.passed(divergence)
        return self._otherwise(turn, divergence)

    def passed(self, divergence: Divergence) -> None:
        """Note a difference after which the fork goes on all the same."""
        self._note(msgspec.structs.replace(divergence, goes_on=True))

    def _note(self, divergence: Divergence) -> None:
        with self._lock:
            if self._recording is not None:
                self._recording(divergence)
            if self.found is None or (self.found.goes_on and not divergence.goes_on):
                self.found = divergence


def stopping_of(stopping: Stopping | None) -> Stopping | None:
    """Return the action of recorded agents where their recording ends.

    Raises:
        ToolRefused: it is not such an action.
    """
    if stopping is None or isinstance(stopping, Stopping):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        return stopping
    raise invalid("stopping", f"it is no `Stopping` but {type(stopping).__name__}, `fork` hands it in")


def leaving_recorded(service: Service) -> Callable[[Divergence], None]:
    """Return a function that records where a fork left its recording, caused by the attempt without an answer. Blocks.

    What it does raises `StoreUnavailable` where the log takes no more.
    """

    def record(divergence: Divergence) -> None:
        started = next(
            (
                one
                for one in service.log.stream(session_stream(divergence.session_key), backwards=True)
                if isinstance(one.event, RunStarted) and one.event.run_id == divergence.run_id
            ),
            None,
        )
        draft = Draft(
            event=divergence,
            id=service.new_id(),
            time=service.clock.now_ms(),
            causation=None if started is None else started.id,
            correlation=None if started is None else started.correlation,
        )
        service.log.append_now((StreamAppend(stream=STREAM, expected=ANY_VERSION, drafts=(draft,)),))

    return record


class _Never:
    """An answer that does not come. Unlike a coroutine it may be left unawaited, where the fork is closed before its loop begins."""

    def __await__(self) -> Generator[None, None, str]:
        yield from asyncio.Event().wait().__await__()
        raise RuntimeError("nobody sets it")


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """How far a fork was continued.

    `missing` are the agents that it waits for, `held` is where it waits for a release, `set_aside` what went wrong and does not
    go on, `imported` what was under way where an import was cut, of which the log has no run to go on with. `divergence` is where a
    recording ended, or first gave something else and was gone on with.
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
    """Wait until the forked work has ended, or stands still. Blocks; the fork's system stays open.

    `timeout` in seconds; None is no limit. Where `ending` says so, nobody waits any longer.
    """
    until = None if timeout is None else service.clock.monotonic() + timeout
    while True:
        head = service.log.head()
        if stopping is not None and stopping.has_stopped:
            return _carried(service, run, "diverged", stopping)
        stands = standing(service)
        is_still = not stands.goes_on and service.log.head() == head
        released = is_still and stopping is not None and stopping.lets_go_on(service, stands.held)
        if is_still and not released:
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
    stands: Standing = _UNDER_WAY,
) -> Carried:
    return Carried(
        state=state,
        outcome=outcome_of(service.reader, run),
        missing=stands.missing,
        held=stands.held,
        set_aside=stands.set_aside,
        imported=stands.imported,
        divergence=None if stopping is None else stopping.found,
    )
