"""What a what-if repeats from its recording besides answers: releases of held texts, and the order of concurrent steps (FORK-7, LIVE-1)."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

import msgspec

from intersession_actors.calls.service.asking import ask_flow, ask_session
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.agents.recorded import RecordedCall
from intersession_actors.outside.agents.recording import RecordedAttempt
from intersession_actors.owners.exchange.commands import ReleaseExchange
from intersession_actors.owners.session.commands import ReleaseCall
from intersession_actors.rules.prompt.meaning import text_meaning
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.plain_json import JsonValue, is_object
from intersession_events.log.log import Log
from intersession_events.log.recorded import parts_in
from intersession_projections.copies.forks.course import Course, CourseTurn, Passed
from intersession_projections.copies.forks.frozen_work import frozen_in
from intersession_projections.views.flows.rows import ExchangeSummary
from intersession_projections.views.held_calls import CallHold, HeldCalls
from intersession_projections.views.run_outcomes.replies import held_in, told_in
from intersession_projections.views.run_outcomes.runs import Runs

_RELEASES: Final = (
    "SELECT DISTINCT originator_id FROM stored_events "
    "WHERE topic LIKE 'exchange\\_released.%' ESCAPE '\\' AND rowid > ? ORDER BY originator_id"
)


class _Then(NamedTuple):
    """A release, with the held text."""

    held: facts.ExchangeHeld
    released: facts.ExchangeReleased
    caller_had_gone_on: bool
    """Whether the call that began the exchange had its answer before."""


class RecordedReleases:
    """The releases of a log after a position. Each applies once, to a hold in the same place with the same text.

    Where only the place counts (`loose`), whatever is held there is released as it was then.
    """

    def __init__(
        self, reading: Callable[[], AbstractContextManager[Log]], *, after: int, loose: bool
    ) -> None:
        self._reading = reading
        self._after = after
        self._loose = loose
        self._left: list[_Then] | None = None
        self._calls: list[CallHold] | None = None

    def release(self, service: Service, exchange: ExchangeSummary) -> bool:
        """Release a held exchange as in the recording; False if it has no such release.

        Where its caller waited in vain for the answer then, it is released once that wait is over: True, and still held.

        Raises:
            ToolRefused: the log did not take it in time.
        """
        held = held_in(service.log, exchange)
        then = None if held is None else self._of(held)
        if held is None or then is None:
            return False
        if then.caller_had_gone_on and _caller_waits(service, exchange):
            return True
        released = then.released
        self._taken(then)
        ask_flow(
            service,
            ReleaseExchange(
                stream=exchange.stream,
                action=released.action,
                by=released.by,
                text=released.text,
                hold_id=held.hold_id,
                for_good=released.for_good,
            ),
        )
        return True

    def release_call(self, service: Service, hold_id: str) -> bool:
        """Release a held tool call as one in the same words was in the recording; False if there was none (ASK-5).

        Raises:
            ToolRefused: the log did not take it in time.
        """
        if self._calls is None:
            with self._reading() as log:
                self._calls = HeldCalls(log).released_behind(self._after)
        (now,) = HeldCalls(service.log).named(hold_id)
        then = next((one for one in self._calls if self._is_call(one, now)), None)
        if then is None or then.released is None or now.released is not None:
            return False
        self._calls.remove(then)
        was = then.released
        command = ReleaseCall(
            hold_id=hold_id, action=was.action, by=was.by, arguments=was.arguments, text=was.text
        )
        ask_session(service, now.session_key, command)
        return True

    def _is_call(self, then: CallHold, now: CallHold) -> bool:
        if (then.session_key, then.held.tool) != (now.session_key, now.held.tool):
            return False
        return self._loose or text_meaning(then.held.arguments) == text_meaning(now.held.arguments)

    def _of(self, held: facts.ExchangeHeld) -> _Then | None:
        if self._left is None:
            with self._reading() as log:
                self._left = [*self._read(log)]
        return next((then for then in self._left if self._is_of(then.held, held)), None)

    def _taken(self, then: _Then) -> None:
        if self._left is not None:
            self._left.remove(then)

    def _is_of(self, then: facts.ExchangeHeld, now: facts.ExchangeHeld) -> bool:
        places = [(one.step, one.turn, text_meaning(one.speaker)) for one in (then, now)]
        return places[0] == places[1] and (
            self._loose or text_meaning(then.text or "") == text_meaning(now.text or "")
        )

    def _read(self, log: Log) -> Iterator[_Then]:
        for (stream,) in log.query(_RELEASES, (self._after,)):
            held: dict[str, facts.ExchangeHeld] = {}
            accepted: facts.FlowAccepted | None = None
            for recorded in parts_in(told_in(log, log.stream(stream))):
                match recorded.event:
                    case facts.FlowAccepted() as event:
                        accepted = event
                    case facts.ExchangeHeld() as event:
                        held[event.hold_id] = event
                    case facts.ExchangeReleased() as event if (
                        recorded.position > self._after and event.hold_id in held
                    ):
                        gone_on = accepted is not None and _had_answer(log, accepted, recorded.position)
                        yield _Then(held[event.hold_id], event, gone_on)
                    case _:
                        pass


def _had_answer(log: Log, accepted: facts.FlowAccepted, position: int) -> bool:
    """Whether the call that began an exchange had its answer before a position."""
    if accepted.requester is None or accepted.requester_run_id is None:
        return False
    for recorded in log.stream(ids.session_stream(accepted.requester)):
        if recorded.position > position:
            break
        said = facts.message_in(recorded.event)
        if (
            said is not None
            and said.role == "toolResult"
            and _run_told(facts.text_of(said)) == accepted.run_id
        ):
            return True
    return False


def _run_told(result: str) -> JsonValue:
    try:
        value: JsonValue = msgspec.json.decode(result)
    except (ValueError, RecursionError):
        return None
    return value.get("runId") if is_object(value) else None


def _caller_waits(service: Service, exchange: ExchangeSummary) -> bool:
    begun = next(iter(service.log.stream(exchange.stream, limit=1)), None)
    if begun is None or not isinstance(begun.event, facts.FlowAccepted):
        return False
    return begun.event.requester_run_id in service.wait_graph.waiting_runs()


_STILL_S: Final = 1.0
"""Where nothing was recorded for so long, what waits for its turn waits for each other."""
_LOOK_AGAIN_S: Final = 0.05


class RecordedOrder:
    """The recorded order of steps in each causal chain after a position: sends and answers of agents.

    Recorded agents take no time, so what one said long before another would come with it, or behind it. What limits of the
    chain count, and in which order a session is spoken to, would be decided otherwise than then.
    """

    def __init__(self, reading: Callable[[], AbstractContextManager[Log]], *, after: int) -> None:
        self._reading = reading
        self._after = after
        self._lock = threading.Lock()
        self._roots: dict[str, str | None] = {}
        self._courses: dict[str, Course] = {}
        self._now: dict[str, tuple[int, Passed]] = {}
        """What has passed of each chain, as the head of the log was then."""
        self._waiting: list[CourseTurn] = []
        self._moved: tuple[int, float] = (0, 0.0)
        """The head of the log, and when it moved, or somebody was let go on, last."""

    def wait(
        self,
        service: Service,
        attempt: RecordedAttempt,
        call: RecordedCall | None,
        over: Callable[[], bool],
    ) -> None:
        """Wait until an attempt's call or answer is due in that order. Blocks, unless the recording is `over`."""
        course = self._course(service, attempt.run_id)
        if course is None:
            return
        turn = course.of_end(attempt.run_id) if call is None else course.of_call(*call)
        if turn is not None:
            self._wait(service, attempt.run_id, turn, course.before(turn), over)

    def _course(self, service: Service, run_id: str) -> Course | None:
        with self._lock:
            root = self._roots.get(run_id)
            if root is None or root not in self._courses:
                with self._reading() as log:
                    run = Runs(log).without_words(run_id)
                    root = self._roots[run_id] = None if run is None else run.root
                    if root is not None and root not in self._courses:
                        self._courses[root] = Course(log, root, self._after, frozen_in(service.log))
            return None if root is None else self._courses[root]

    def _wait(
        self, service: Service, run_id: str, turn: CourseTurn, passed: Passed, over: Callable[[], bool]
    ) -> None:
        root = self._roots[run_id]
        if root is None:
            return
        with self._lock:
            self._waiting.append(turn)
        try:
            with service.world.agents.waiting():
                while not over():
                    head = service.log.head()
                    if self._passed(service, root, head).has_come_to(passed) or self._goes_first(
                        service, turn, head
                    ):
                        return
                    service.log.wait_for(head + 1, timeout=_LOOK_AGAIN_S)
        except StoreUnavailable as error:
            service.store_failed(
                error
            )  # its answer can't be recorded either, and is tried again as any other
        finally:
            with self._lock:
                self._waiting.remove(turn)

    def _passed(self, service: Service, root: str, head: int) -> Passed:
        with self._lock:
            known = self._now.get(root)
            if known is None or known[0] < head:
                known = self._now[root] = (head, self._courses[root].now(service.log))
            return known[1]

    def _goes_first(self, service: Service, turn: CourseTurn, head: int) -> bool:
        """Whether this goes on first: what it waits for waits for it, or does not come here."""
        now = service.clock.monotonic()
        with self._lock:
            moved_to, since = self._moved
            if head != moved_to:
                self._moved = (head, now)
                return False
            if now - since < _STILL_S or turn != min(self._waiting):
                return False
            self._moved = (head, now)
            return True
