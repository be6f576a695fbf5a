"""The outbox: takes every text that was decided to its channel, and says how that ended (ANN-3)."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final, assert_never

import msgspec

from intersession_actors.chains import Cause
from intersession_actors.channels import Asked, Delivered, DeliveryResult, NotDelivered, Outbound, Place
from intersession_actors.config import milliseconds
from intersession_actors.delivery import rules
from intersession_actors.delivery.commands import (
    DeliveryCommand,
    DeliveryReturned,
    GiveUpDelivery,
    RetryDelivery,
    RetryDue,
    SendChecked,
    TooOld,
)
from intersession_actors.delivery.records import RULES, knew_of
from intersession_actors.delivery.rules import Circumstances, Delivery
from intersession_actors.failures import FailureKind
from intersession_actors.flows import Flow, ProcessManager
from intersession_actors.host import Inside
from intersession_actors.policy import Verdict
from intersession_actors.session import CheckSend
from intersession_actors.streams import Plan, Refused, Resume, World
from intersession_events import facts
from intersession_events.crash_points import crash_point
from intersession_events.errors import NotStorable
from intersession_events.log import Recorded

ASK_BUSY_AGAIN_MS = 500
"""How long to wait for a session whose inbox was full."""
ASK_AGAIN_MS = 60_000
"""How long to wait for a session that could not say whether its words may go out."""

_ANSWER: Final = Verdict(action="allow", rule="the answer to an owner's command: allow")

DeliveryFlow = Flow[Delivery, DeliveryCommand]


class Outbox(ProcessManager[Delivery, DeliveryCommand, Circumstances]):
    """One actor for all deliveries."""

    def __init__(self, world: World) -> None:
        super().__init__(world, RULES)
        self._told_parked: set[str] = set()
        """Deliveries whose missing channel was told of."""

    def is_over(self, state: Delivery) -> bool:
        """Whether nothing more will be tried, or not before somebody delivers for the channel: that is read again then."""
        channel = state.decided.route.channel
        return state.phase == "final" or not (
            self.world.channels.has(channel) or self.world.fork.sealed(channel)
        )

    def decide(self, flow: DeliveryFlow, command: DeliveryCommand) -> Plan | Refused | None:
        """Decide the next step of a delivery."""
        state = flow.state
        if state is None:
            return None
        found = self._known(flow.stream, state, command)
        if found is None:
            return None
        asked, now = found
        events = rules.decide(state, asked, now)
        if isinstance(events, Refused):
            return events
        if isinstance(asked, SendChecked) and not self._goes_out(flow.stream, state, events):
            return None
        for event in events:
            if isinstance(event, facts.DeliveryStarted):
                self.world.channels.deliveries.due(state.decided.key, event.attempt)
        if not events:
            return None
        return Plan(
            events=tuple(events),
            correlation=flow.correlation,
            cause=flow.cause,
            asked=asked,
            knew=knew_of(state, now),
        )

    def _known(
        self, stream: str, state: Delivery, command: DeliveryCommand
    ) -> tuple[DeliveryCommand, Circumstances] | None:
        """Return what is to be decided upon, and what is known for that; None where there is nothing to decide yet."""
        match command:
            case SendChecked():
                return command, self._known_of_verdict(stream, state, command)
            case DeliveryReturned():
                return command, self._known_of_result(command.result)
            case RetryDue():
                if command.attempt == state.attempt and state.phase != "final":
                    self._check(stream, state)
                else:
                    self.world.channels.give_back_seat(stream)
                return None
            case TooOld():
                cut_off = self._is_asked(state) is Asked.NEVER
                return command, Circumstances(cut_off=cut_off, too_old_s=self._longest_ms // 1000)
            case RetryDelivery():
                return command, Circumstances()
            case GiveUpDelivery():
                cut_off = state.phase == "started" and self._is_asked(state) is Asked.NEVER
                return command, Circumstances(cut_off=cut_off)
            case Resume():
                return self._resume(stream, state, command)
            case _:
                assert_never(command)

    def _goes_out(self, stream: str, state: Delivery, events: Sequence[facts.DeliveryEvent]) -> bool:
        """Whether what a verdict leads to can be done now: an attempt needs its turn, and a seat of its channel."""
        starts = any(isinstance(event, facts.DeliveryStarted) for event in events)
        if starts and not (self._has_turn(stream, state) and self._has_seat(stream, state)):
            return False
        if not starts and state.phase != "started":
            self.world.channels.give_back_seat(stream)
        return True

    def _has_turn(self, stream: str, state: Delivery) -> bool:
        """Whether no earlier text to its place is to go out first. If one is, it is asked again once it may go (ANN-5)."""
        due = RetryDue(stream=stream, attempt=state.attempt)
        free = partial(self.world.mail.tell_flow, stream, due)
        return self.world.channels.turns.take(Place.of(state.decided.route), stream, state.order, free)

    def _has_seat(self, stream: str, state: Delivery) -> bool:
        """Whether the channel has a seat for the text. If not, it is asked again once there is one: it has not started by then."""
        due = RetryDue(stream=stream, attempt=state.attempt)
        # Not to ourselves: the outbox may have been started anew while the channel was at work.
        return self.world.channels.keep_seat(
            state.decided.route.channel, stream, lambda: self.world.mail.tell_flow(stream, due)
        )

    def given_up(self, stream: str, refused: Refused) -> None:
        """Free the seat of a delivery that can't go on."""
        super().given_up(stream, refused)
        self.world.channels.give_back_seat(stream)
        self.world.channels.turns.over(stream)

    def _known_of_verdict(self, stream: str, state: Delivery, checked: SendChecked) -> Circumstances:
        if checked.after != state.attempt or not checked.verdict.allowed:
            return Circumstances()
        if self.world.fork.sealed(state.decided.route.channel):
            return Circumstances(sealed=True)
        if state.phase == "final":
            return Circumstances()
        if self._is_too_old(stream, state):
            return Circumstances(too_old_s=self._longest_ms // 1000)
        return Circumstances(has_channel=not self._is_parked(stream, state))

    def _known_of_result(self, result: DeliveryResult) -> Circumstances:
        if not isinstance(result, NotDelivered):
            return Circumstances()
        crash_point("A8")
        return Circumstances(now_ms=self.world.time.clock.now_ms() if result.retry else 0)

    @property
    def _longest_ms(self) -> int:
        return milliseconds(self.world.limits.deliveries.max_age_seconds)

    # --- a channel that is not here

    def _is_parked(self, stream: str, state: Delivery) -> bool:
        """Whether nobody delivers for the channel here; the text waits for that as a run does for its agent, but not for ever."""
        if self.world.channels.has(state.decided.route.channel):
            return False
        self._tell_parked(stream, state)
        self.world.channels.turns.over(stream)
        longest = self._longest_ms
        if longest:
            self.later(max(longest - self._age_ms(stream, state), 0), "parked", TooOld(stream=stream))
        return True

    def _is_too_old(self, stream: str, state: Delivery) -> bool:
        longest = self._longest_ms
        return bool(longest) and self._age_ms(stream, state) >= longest

    def _age_ms(self, stream: str, state: Delivery) -> int:
        return self.world.time.stopwatch.elapsed_ms("decided", stream, since_ms=state.decided_ms)

    def _is_asked(self, state: Delivery) -> DeliveryResult | Asked:
        """Return what this process knows of the attempt under way."""
        return self.world.channels.deliveries.of(state.decided.key, state.attempt)

    def unstorable(self, command: DeliveryCommand, error: NotStorable) -> DeliveryCommand | Refused | None:
        """Keep of a channel's error what can be recorded: the text did not go out all the same."""
        if isinstance(command, DeliveryReturned) and isinstance(command.result, NotDelivered):
            failed = command.result
            if not failed.error.isascii():
                spelled_out = msgspec.structs.replace(failed, error=ascii(failed.error))
                return msgspec.structs.replace(command, result=spelled_out)
        return super().unstorable(command, error)

    def _resume(
        self, stream: str, state: Delivery, command: Resume
    ) -> tuple[DeliveryCommand, Circumstances] | None:
        match state.phase:
            case "decided":
                self.world.channels.turns.enter(Place.of(state.decided.route), stream, state.order)
                self._check(stream, state)
            case "failed" if self.world.fork.sealed(state.decided.route.channel):
                self._check(stream, state)
            case "failed":
                self.world.channels.turns.enter(Place.of(state.decided.route), stream, state.order)
                self._retry_later(stream, state)
            case "final":
                self.world.channels.turns.over(stream)
                self._tell_owner(state, self._flow(stream).cause)
            case "started":
                self.world.channels.turns.enter(Place.of(state.decided.route), stream, state.order)
                return self._resume_attempt(stream, state, command)
        return None

    def _resume_attempt(
        self, stream: str, state: Delivery, command: Resume
    ) -> tuple[DeliveryCommand, Circumstances] | None:
        """Return what is known of an attempt that has no outcome: only a call that this process does not make was cut off."""
        channel = state.decided.route.channel
        if self.world.fork.sealed(channel):
            return command, Circumstances(sealed=True)
        asked = self._is_asked(state)
        if asked is Asked.UNDER_WAY:
            return None
        if asked is Asked.DUE or (isinstance(asked, Delivered) and asked.sent == state.sent):
            # This process wrote that the attempt begins, or a part of it, and failed before it could call.
            self._call(stream, state, self._flow(stream).cause, state.attempt)
            return None
        if not isinstance(asked, Asked):
            returned = DeliveryReturned(stream=stream, attempt=state.attempt, result=asked, begins=state.sent)
            return returned, self._known_of_result(asked)
        if self._is_too_old(stream, state):
            return command, Circumstances(too_old_s=self._longest_ms // 1000)
        if self._is_parked(stream, state):
            return None
        return command, Circumstances(idempotent=self.world.channels.idempotent(channel))

    def act(self, stream: str, state: Delivery, recorded: Recorded) -> None:
        """Do what a durable event asks for."""
        event = recorded.event
        if not isinstance(event, facts.DeliveryEvent):
            return
        self._report(stream, state, event)
        match event:
            case facts.DeliveryDecided():
                crash_point("A3")
                self.world.channels.turns.enter(Place.of(state.decided.route), stream, state.order)
                self._check(stream, state)
            case facts.DeliveryRetried():
                # It waits for its channel as a new one does.
                self.world.time.stopwatch.begin("decided", stream, at=self._flow(stream).decided_at)
                self.world.channels.turns.enter(Place.of(state.decided.route), stream, state.order)
                self._check(stream, state)
            case facts.DeliveryStarted():
                crash_point("A5")
                self.world.time.timers.cancel(("parked", stream))
                self._call(stream, state, recorded.id, event.attempt)
            case facts.DeliveryPartDone():
                self._recorded(state)
                self.world.channels.deliveries.due(state.decided.key, event.attempt)
                self._call(stream, state, recorded.id, event.attempt)
            case facts.DeliveryFailed(retry_at_ms=int()):
                self._recorded(state)
                self.world.channels.turns.failed(stream)
                self.world.time.stopwatch.begin("failed", stream, at=self._flow(stream).decided_at)
                self._retry_later(stream, state)
            case (
                facts.DeliveryDone()
                | facts.DeliveryFailed()
                | facts.DeliveryUnknown()
                | facts.DeliveryDenied()
                | facts.DeliveryWithheld()
            ):
                crash_point("A7")
                self._recorded(state)
                self.world.channels.turns.over(stream, arrived=isinstance(event, facts.DeliveryDone))
                for began in ("decided", "failed"):
                    self.world.time.stopwatch.forget(began, stream)
                self._tell_owner(state, recorded.id)

    def _recorded(self, state: Delivery) -> None:
        self.world.channels.deliveries.recorded(state.decided.key, state.attempt)

    def _report(self, stream: str, state: Delivery, event: facts.DeliveryEvent) -> None:
        """Tell the operator what has gone wrong with a delivery."""
        match event:
            case facts.DeliveryFailed():
                kind: FailureKind = "delivery_failed" if event.retry_at_ms is None else "delivery_retry"
                self._tell(kind, stream, state, event.error, event)
            case facts.DeliveryUnknown(error=error):
                said = "" if error is None else f" ({error})"
                self._tell("delivery_unknown", stream, state, f"the channel may have shown the text{said}")
            case facts.DeliveryDenied():
                self._tell("delivery_denied", stream, state, event.rule)
            case _:
                pass
        if state.phase == "final":
            self._told_parked.discard(stream)

    def _tell_parked(self, stream: str, state: Delivery) -> None:
        if stream not in self._told_parked:
            self._told_parked.add(stream)
            self._tell(
                "delivery_parked",
                stream,
                state,
                "give it in channels=, by register_channel, or as channels.<name>.deliver",
            )

    def _tell(
        self,
        kind: FailureKind,
        stream: str,
        state: Delivery,
        error: str,
        failed: facts.DeliveryFailed | None = None,
    ) -> None:
        decided = state.decided
        self.world.reports.tell(
            kind,
            inside=self._inside(decided, self._flow(stream).cause),
            session_key=decided.session_key,
            run_id=decided.run_id,
            stream=stream,
            channel=decided.route.channel,
            attempt=state.attempt or None,
            error=error,
            retry_at_ms=failed.retry_at_ms if failed is not None else None,
            traceback=failed.traceback if failed is not None else None,
        )

    def _check(self, stream: str, state: Delivery) -> None:
        """Ask the session whether its words may go out now (ANN-4).

        The answer to an owner's command is the system's word, so `/send off` is answered too (INB-3).
        """
        if state.decided.purpose == "command_reply":
            self.tell_self(SendChecked(stream=stream, verdict=_ANSWER, after=state.attempt))
            return

        def answered(verdict: Verdict | Refused) -> None:
            if isinstance(verdict, Refused):
                # Nobody to ask: the session has its hands full, the system stops, or the session is degraded. Nothing is
                # decided by that.
                self.world.channels.turns.failed(stream)
                again_ms = ASK_BUSY_AGAIN_MS if verdict.code == "busy" else ASK_AGAIN_MS
                self.later(again_ms, "ask", Resume(stream=stream))
                return
            self.tell_self(SendChecked(stream=stream, verdict=verdict, after=state.attempt))

        self.world.mail.tell_session(
            state.decided.session_key, CheckSend(channel=state.decided.route.channel, answer=answered)
        )

    def _call(self, stream: str, state: Delivery, started: str | None, attempt: int) -> None:
        decided, route = state.decided, state.decided.route

        def came(result: Delivered | NotDelivered) -> None:
            crash_point("A6")
            # Not to ourselves: the outbox may have been started anew while the channel was at work.
            returned = DeliveryReturned(stream=stream, attempt=attempt, result=result, begins=state.sent)
            self.world.mail.tell_flow(stream, returned)

        self.world.channels.start(
            route.channel,
            Outbound(
                channel=route.channel,
                to=route.to,
                thread=route.thread,
                account=route.account,
                text=decided.text,
                key=decided.key,
            ),
            came,
            attempt=attempt,
            begins=state.sent,
            inside=self._inside(decided, started, attempt=attempt),
            seat=stream,
        )

    def _retry_later(self, stream: str, state: Delivery) -> None:
        if state.retry_at_ms is not None:
            since_ms = state.retry_at_ms - state.pause_ms
            left = state.pause_ms - self.world.time.stopwatch.elapsed_ms("failed", stream, since_ms=since_ms)
            longest = self._longest_ms
            if longest:  # it is given up on time, however long the pause
                left = min(left, longest - self._age_ms(stream, state))
            self.later(left, "retry", RetryDue(stream=stream, attempt=state.attempt))

    def _inside(
        self, decided: facts.DeliveryDecided, event: str | None, *, attempt: int | None = None
    ) -> Inside:
        """Return what code of the host's is called for because of a delivery: it goes on with the delivery's chain (LOOP-5)."""
        if decided.budget is None:
            return nullcontext
        return Cause(
            session_key=decided.session_key,
            budget=decided.budget,
            event=event,
            clock=self.world.time.clock,
            of=None if attempt is None else decided.delivery_id,
            attempt=attempt or 1,
        ).inside

    def _tell_owner(self, state: Delivery, cause: str | None) -> None:
        ended = rules.ended_of(state, cause)
        if ended is not None:
            self.world.mail.tell_flow(ended.stream, ended)
