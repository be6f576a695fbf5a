"""The outbox: takes every text to its channel, and records the outcome (ANN-3)."""

from collections.abc import Sequence
from functools import partial
from typing import assert_never

import msgspec

from intersession_actors.outside.attachments.stored import StoredFile
from intersession_actors.outside.channels.drafts import NO_RECEIPT
from intersession_actors.outside.channels.outcomes import Delivered, DeliveryResult, NotDelivered
from intersession_actors.outside.channels.turns import CallState, Place
from intersession_actors.owners.delivery import rules
from intersession_actors.owners.delivery.commands import (
    DeliveryCommand,
    DeliveryReturned,
    GiveUpDelivery,
    RetryDelivery,
    RetryDue,
    SendChecked,
    TooOld,
)
from intersession_actors.owners.delivery.effects import (
    AskPolicy,
    AttemptRecorded,
    CallChannel,
    GiveBackSeat,
    LeaveLine,
    LineUp,
    WaitsAgain,
    ask_policy,
    call,
    carried_on,
    parked,
    report,
)
from intersession_actors.owners.delivery.records import RULES, knew_of
from intersession_actors.owners.delivery.rules import Circumstances, Delivery
from intersession_actors.owners.flows.process_manager import Flow, ProcessManager
from intersession_actors.owners.session.commands import CheckSend
from intersession_actors.owners.streams.commands import Refused, Resume
from intersession_actors.owners.streams.effects import AttemptDue, Effect, Plan, Sleep, TellFlow
from intersession_actors.owners.streams.owner import Owner
from intersession_actors.owners.streams.world import World
from intersession_actors.rules.config.settings import milliseconds
from intersession_actors.rules.policy.sending import Verdict
from intersession_events import facts
from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import NotStorable

ASK_BUSY_AGAIN_MS = 500
"""How long to wait for a session whose inbox was full."""
ASK_AGAIN_MS = 60_000
"""How long to wait for a session that could not say whether its words may go out."""

DeliveryFlow = Flow[Delivery, DeliveryCommand]


class Outbox(ProcessManager[Delivery, DeliveryCommand, Circumstances]):
    """One actor for all deliveries."""

    def __init__(self, world: World) -> None:
        super().__init__(world, RULES)
        self._told_parked: set[str] = set()
        """Deliveries whose missing channel was told of."""

    def is_over(self, state: Delivery) -> bool:
        """Whether no attempt will follow, or none before its channel is registered: then it is read again."""
        channel = state.decided.route.channel
        return state.phase == "final" or not (
            self.world.channels.has(channel) or self.world.fork.sealed(channel)
        )

    def decide(self, flow: DeliveryFlow, command: DeliveryCommand) -> Plan | Refused | None:
        """Decide the next step of a delivery."""
        stream, state = flow.stream, flow.state
        if state is None:
            return None
        if isinstance(command, RetryDue):
            due = command.attempt == state.attempt and state.phase != "final"
            return Plan(effects=(ask_policy(state) if due else GiveBackSeat(),))
        ahead = list[Effect]()
        if isinstance(command, Resume):
            resumed = self._resume(flow, state, command, ahead)
            if resumed is None:
                return Plan(effects=ahead)
            command = resumed
        now = self._circumstances(stream, state, command)
        if not now.has_channel:
            ahead += self._parked(stream, state, flow.cause)
        events = rules.decide(state, command, now)
        if isinstance(events, Refused):
            return events
        starts = [event.attempt for event in events if isinstance(event, facts.DeliveryStarted)]
        if isinstance(command, SendChecked):
            if starts and not (self._has_turn(stream, state) and self._has_seat(stream, state)):
                return None
            if not starts and state.phase != "started":
                ahead.append(GiveBackSeat())
        ahead += (AttemptDue(state.decided.key, attempt) for attempt in starts)
        return Plan(
            events=tuple(events),
            correlation=flow.correlation,
            cause=flow.cause,
            asked=command,
            knew=knew_of(state, now),
            effects=ahead,
        )

    def _resume(
        self, flow: DeliveryFlow, state: Delivery, command: Resume, ahead: list[Effect]
    ) -> DeliveryCommand | None:
        """Resume an open delivery; return the command for an attempt without an outcome, if there is one."""
        sealed = self.world.fork.sealed(state.decided.route.channel)
        ahead += carried_on(state, flow.cause, self.world.limits, sealed=sealed)
        if state.phase != "started":
            return None
        made = CallState.NEVER if sealed else self._is_asked(state)
        if made is CallState.DUE or (isinstance(made, Delivered) and made.sent == state.sent):
            # This process wrote that the attempt begins, or a part of it, and failed before it could call.
            ahead.append(call(state, flow.cause, state.attempt))
            return None
        if not isinstance(made, CallState):
            return DeliveryReturned(stream=flow.stream, attempt=state.attempt, result=made, begins=state.sent)
        # Only a call that this process does not make was cut off.
        return command if made is CallState.NEVER else None

    def _circumstances(self, stream: str, state: Delivery, command: DeliveryCommand) -> Circumstances:
        """Return a decision's circumstances: those that no possible event depends on are not looked up."""
        match command:
            case SendChecked(verdict=verdict):
                if command.after != state.attempt or not verdict.allowed:
                    return Circumstances()
                return self._of_next_step(stream, state)
            case DeliveryReturned(result=NotDelivered() as failed):
                crash_point("A8")
                return Circumstances(now_ms=self.world.time.clock.now_ms() if failed.retry else 0)
            case TooOld():
                cut_off = self._is_asked(state) is CallState.NEVER
                return Circumstances(cut_off=cut_off, too_old_s=self._longest_ms // 1000)
            case GiveUpDelivery():
                cut_off = state.phase == "started" and self._is_asked(state) is CallState.NEVER
                return Circumstances(cut_off=cut_off)
            case Resume():
                known = self._of_next_step(stream, state)
                if known != Circumstances():
                    return known
                return Circumstances(idempotent=self._may_repeat(state))
            case DeliveryReturned() | RetryDelivery() | RetryDue():
                return Circumstances()
            case _:
                assert_never(command)

    def _may_repeat(self, state: Delivery) -> bool:
        """Whether a call that was cut off may be made again: the channel takes its key twice, or it gives a message its text."""
        channels, channel = self.world.channels, state.decided.route.channel
        is_edit = state.decided.edits not in {None, NO_RECEIPT} and not state.sent
        return channels.idempotent(channel) or (is_edit and channels.edits(channel) is not None)

    def _of_next_step(self, stream: str, state: Delivery) -> Circumstances:
        channel = state.decided.route.channel
        if self.world.fork.sealed(channel):
            return Circumstances(sealed=True)
        if state.phase == "final":
            return Circumstances()
        if self._is_too_old(stream, state):
            return Circumstances(too_old_s=self._longest_ms // 1000)
        return Circumstances(has_channel=self.world.channels.has(channel))

    def _parked(self, stream: str, state: Delivery, cause: str | None) -> Sequence[Effect]:
        """Return what a text asks for whose channel is not here; the operator is told of it once."""
        if stream in self._told_parked:
            return parked(state, self.world.limits)
        self._told_parked.add(stream)
        how = "give it in channels=, by register_channel, as channels.<name>.deliver, or to a worker"
        return report("delivery_parked", state, cause, how), *parked(state, self.world.limits)

    def _has_turn(self, stream: str, state: Delivery) -> bool:
        """Whether no earlier text to its place is to go out first. If one is, it is asked again once it may go (ANN-5).

        So it is where its number is not known yet: that is read outside of any actor, once for each place (ANN-7).
        """
        due = RetryDue(stream=stream, attempt=state.attempt)
        free, mail = partial(self.world.mail.tell_flow, stream, due), self.world.mail
        turns, place = self.world.channels.turns, Place.of(state.decided.route)
        if not turns.is_next(place, stream, state.order, free):
            return False
        if turns.number(stream) is not None:
            return True

        def counted(number: int | Exception) -> None:
            turns.numbered(stream, number if isinstance(number, int) else 0)
            free()

        mail.on_disk(partial(mail.number_of, state.decided.route, state.decided.delivery_id), counted)
        return False

    def _has_seat(self, stream: str, state: Delivery) -> bool:
        """Whether the channel has a seat for the text. If not, it is asked again once there is one: it has not started by then."""
        due = RetryDue(stream=stream, attempt=state.attempt)
        # Not to ourselves: the outbox may have been started anew while the channel was at work.
        return self.world.channels.lanes.keep(
            state.decided.route.channel, stream, lambda: self.world.mail.tell_flow(stream, due)
        )

    def given_up(self, stream: str, refused: Refused) -> None:
        """Free the seat of a delivery that can't go on."""
        super().given_up(stream, refused)
        self.world.channels.lanes.give_back(stream)
        self.world.channels.turns.over(stream)

    @property
    def _longest_ms(self) -> int:
        return milliseconds(self.world.limits.deliveries.max_age_seconds)

    def _is_too_old(self, stream: str, state: Delivery) -> bool:
        longest = self._longest_ms
        return bool(longest) and self._age_ms(stream, state) >= longest

    def _age_ms(self, stream: str, state: Delivery) -> int:
        return self.world.time.stopwatch.elapsed_ms("decided", stream, since_ms=state.decided_ms)

    def _is_asked(self, state: Delivery) -> DeliveryResult | CallState:
        """Return what this process knows of the attempt under way."""
        return self.world.channels.deliveries.of(state.decided.key, state.attempt)

    def unstorable(self, command: DeliveryCommand, error: NotStorable) -> DeliveryCommand | Refused | None:
        """Return a channel's error without what can't be recorded: the attempt failed all the same."""
        if isinstance(command, DeliveryReturned) and isinstance(command.result, NotDelivered):
            failed = command.result
            if not failed.error.isascii():
                spelled_out = msgspec.structs.replace(failed, error=ascii(failed.error))
                return msgspec.structs.replace(command, result=spelled_out)
        return super().unstorable(command, error)

    def act(self, owner: Owner[Delivery, DeliveryCommand], effect: Effect) -> None:
        """Carry out an effect of a delivery."""
        stream, channels = owner.stream, self.world.channels
        match effect:
            case LineUp(place, order):
                channels.turns.enter(place, stream, order)
            case WaitsAgain():
                channels.turns.failed(stream)
            case LeaveLine():
                if owner.state is not None and owner.state.phase == "final":
                    self._told_parked.discard(stream)
                channels.turns.over(stream)
            case GiveBackSeat():
                channels.lanes.give_back(stream)
            case AttemptDue(key, attempt):
                channels.deliveries.due(key, attempt)
            case AttemptRecorded(key, attempt):
                channels.deliveries.recorded(key, attempt)
            case AskPolicy():
                self._ask_policy(stream, effect)
            case CallChannel():
                self._call(stream, effect)
            case _:
                super().act(owner, effect)

    def _ask_policy(self, stream: str, ask: AskPolicy) -> None:
        def answered(verdict: Verdict | Refused) -> None:
            if isinstance(verdict, Refused):
                # Nobody to ask: the session has its hands full, the system stops, or the session is degraded. Nothing is
                # decided by that.
                self.world.channels.turns.failed(stream)
                again_ms = ASK_BUSY_AGAIN_MS if verdict.code == "busy" else ASK_AGAIN_MS
                self.set_timer(Sleep(("ask", stream), TellFlow(Resume(stream=stream)), again_ms))
                return
            self.tell_self(SendChecked(stream=stream, verdict=verdict, after=ask.after))

        self.world.mail.tell_session(ask.session_key, CheckSend(channel=ask.channel, answer=answered))

    def _call(self, stream: str, call: CallChannel) -> None:
        def came(result: DeliveryResult) -> None:
            crash_point("A6")
            # Not to ourselves: the outbox may have been started anew while the channel was at work.
            returned = DeliveryReturned(
                stream=stream, attempt=call.attempt, result=result, begins=call.begins
            )
            self.world.mail.tell_flow(stream, returned)

        channels = self.world.channels
        outbound = msgspec.structs.replace(call.outbound, number=channels.turns.number(stream) or None)
        if call.files:
            files = StoredFile.all(call.files, self.world.log.files)
            outbound = msgspec.structs.replace(outbound, files=files)
        channels.start(
            outbound.channel,
            outbound,
            came,
            attempt=call.attempt,
            begins=call.begins,
            inside=self.world.inside(call.caused),
            seat=stream,
            draft=call.draft,
        )
