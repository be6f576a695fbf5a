"""Reconstructs the exchanges of a state: which call, message, turns and announce belong together (IMP-4). Pure.

OpenClaw keeps no record of an exchange. What it leaves is the call with its result in the requester's transcript, and
in both transcripts user messages whose provenance names the other party: the message itself, then the reply of the
target handed to the requester (turn 1), the requester's answer handed to the target (turn 2) and so on, and last the
fixed prompt of the announce step. They are taken in order of time; each goes to the exchange that expects it. Where
an exchange hands on an older text than the last one (OpenClaw does, when a turn said nothing), that is `stale`; where
several expect one message, the one that has waited longest gets it, and `rivals` says how many others there were.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from intersession_events.transcripts.openclaw.reading.foreign_json import a_text
from intersession_events.transcripts.openclaw.reading.lines import Line
from intersession_events.transcripts.openclaw.reconstruction.steps import (
    HANDED,
    WHITE_SPACE,
    Call,
    Step,
    plain,
)
from intersession_events.transcripts.openclaw.report import Refused, Unattributed

ANNOUNCE_PROMPT: Final = "Agent-to-agent announce step."
REPLY_SKIP: Final = "REPLY_SKIP"
_RESET: Final = re.compile(r"/(?:new|reset)\b\s*(?P<text>.*)", re.IGNORECASE | re.DOTALL)
_GREETING: Final = "A new session was started via /new or /reset."
_DEFAULT_TIMEOUT_MS: Final = 30_000
_MOST_TIMEOUT_MS: Final = 86_400_000
_STEP_LIMIT_MS: Final = 60_000
_SLACK_MS: Final = 5_000
_GIVEN_UP_MS: Final = 600_000
_MOST_TURNS: Final = 5
_LOOPING: Final = frozenset({"ok", "accepted"})
_SENT: Final = frozenset({"ok", "accepted", "timeout", "error"})


class Stepped(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a session: its session and its sender, both by canonical key."""

    key: str
    session_id: str
    step: Step
    source: str | None = None


class Send(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted call of `sessions_send`. `within` is the step it was made in."""

    within: Stepped
    call: Call
    target: str
    message: str
    timeout_ms: int

    @property
    def latest(self) -> int | None:
        """The latest time at which its message can have arrived; None if any time is possible."""
        return self.call.result.time if self.call.result is not None and self.call.status == "ok" else None

    @property
    def wait_ms(self) -> int:
        """How long OpenClaw waits for a turn of this exchange; also for the first reply, if the caller does not."""
        return min(self.timeout_ms or _DEFAULT_TIMEOUT_MS, _STEP_LIMIT_MS)


class CutOff(msgspec.Struct, frozen=True, kw_only=True):
    """A call of `sessions_send` without a result; `target` is the key that it names, if it names one."""

    within: Stepped
    call: Call
    message: str
    target: str | None


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A step that belongs to an exchange, and how sure that is."""

    at: Stepped
    stale: bool = False
    rivals: int = 0


class Exchange(msgspec.Struct, kw_only=True):
    """An exchange as far as it is known. Without a `send`, no transcript shows the call that began it."""

    send: Send | None
    requester: str
    primary: Turn
    turns: list[Turn] = msgspec.field(default_factory=list[Turn])
    announce: Turn | None = None

    @property
    def target(self) -> str:
        """The session it was sent to."""
        return self.primary.at.key

    @property
    def last(self) -> Turn:
        """The newest step, the announce left out."""
        return self.turns[-1] if self.turns else self.primary

    @property
    def goes_on(self) -> bool:
        """Whether OpenClaw takes steps after the first at all: only if the reply came while the caller waited."""
        step = self.primary.at.step
        if step.status != "ok":
            return False
        if self.send is None or self.send.call.result is None:
            return True
        if self.send.call.status not in _LOOPING:
            return False
        if self.send.call.status == "ok":
            return a_text(self.send.call.details.get("reply")) is not None
        return step.end - self.send.call.line.time <= self.send.wait_ms + _SLACK_MS

    def expects_turn(self, key: str, source: str, time: int) -> bool:
        """Whether the next turn belongs to this session, and may have begun at this time."""
        speaker, other = (
            (self.requester, self.target) if len(self.turns) % 2 == 0 else (self.target, self.requester)
        )
        ended = self.turns and (self.last.at.step.said or "") == REPLY_SKIP
        return (
            not ended
            and self.requester != self.target
            and len(self.turns) < _MOST_TURNS
            and (speaker, other) == (key, source)
            and self.last.at.step.time <= time
        )

    @property
    def handed_on(self) -> str:
        """The text that the next turn begins with, normalised for comparison."""
        if (
            not self.turns
            and self.send is not None
            and (reply := a_text(self.send.call.details.get("reply")))
        ):
            return plain(reply)
        return plain(self.last.at.step.said or "")


class Found(msgspec.Struct, kw_only=True):
    """The result: exchanges in order of time, refused sends, and unattributed traces."""

    exchanges: list[Exchange] = msgspec.field(default_factory=list[Exchange])
    refused: list[Refused] = msgspec.field(default_factory=list[Refused])
    unattributed: list[Unattributed] = msgspec.field(default_factory=list[Unattributed])


def find_exchanges(steps: Sequence[Stepped], mentioned: Callable[[str], str]) -> Found:
    """Sort all inter-session messages into exchanges. `mentioned` makes a key that a transcript names canonical."""
    return _Finder(steps, mentioned).find()


class _Finder:
    def __init__(self, steps: Sequence[Stepped], mentioned: Callable[[str], str]) -> None:
        self._steps = sorted(steps, key=lambda at: (at.step.time, at.step.message.place))
        self._mentioned = mentioned
        self._found = Found()
        self._waiting: dict[tuple[str, str], list[Send]] = defaultdict(list)
        self._cut_off: dict[str, list[CutOff]] = defaultdict(list)
        self._open: dict[frozenset[str], list[Exchange]] = defaultdict(list)
        self._said: dict[str, list[tuple[int, str]]] = defaultdict(list)

    def find(self) -> Found:
        for at in self._steps:
            if at.step.said is not None:
                self._said[at.key].append((at.step.end, plain(at.step.said)))
            for call in at.step.calls:
                if call.name == "sessions_send":
                    self._called(at, call)
        for at in self._steps:
            if at.source is not None:
                self._place(at, at.source)
            elif at.step.unprompted is not None and not at.step.unprompted.startswith(HANDED):
                self._unprompted(at)
        self._leave_calls()
        return self._found

    def _leave_calls(self) -> None:
        """Count the calls whose message is nowhere."""
        for sends in self._waiting.values():
            for send in sends:
                reason = f"answered {send.call.status!r}, but {send.target} has no such message"
                self._leave("sessions_send", send.call.line, reason)
        for calls in self._cut_off.values():
            for cut in calls:
                reason = "the transcript has no result of the call, and no session has its message"
                self._leave("sessions_send", cut.call.line, reason)

    def _called(self, at: Stepped, call: Call) -> None:
        target, message = a_text(call.details.get("sessionKey")), a_text(call.arguments.get("message"))
        if call.result is None and message is not None:
            named = a_text(call.arguments.get("sessionKey"))
            cut = CutOff(within=at, call=call, message=message.strip(WHITE_SPACE), target=named)
            self._cut_off[at.key].append(cut)
            return
        if call.status not in _SENT or target is None or message is None:
            self._found.refused.append(call.refusal)
            return
        key = self._mentioned(target)
        text = message.strip(WHITE_SPACE)
        send = Send(within=at, call=call, target=key, message=text, timeout_ms=_timeout_ms(call))
        self._waiting[at.key, key].append(send)

    def _place(self, at: Stepped, source: str) -> None:
        if at.step.spoken == ANNOUNCE_PROMPT:
            self._announce(at, source)
            return
        send = next((send for send in self._waiting[source, at.key] if _carries(send, at.step)), None)
        if send is not None:
            self._waiting[source, at.key].remove(send)
            self._begin(Exchange(send=send, requester=source, primary=Turn(at=at)))
            return
        if self._turn(at, source):
            return
        cut = self._cut_off_send(at, source)
        if cut is not None:
            self._begin(Exchange(send=cut, requester=source, primary=Turn(at=at)))
            return
        self._orphan(at, source)

    def _cut_off_send(self, at: Stepped, source: str) -> Send | None:
        """Return the call whose message this is, among those that a crash or an abort left without a result.

        Such a call does not say where its message went: label and agent are looked up by OpenClaw. Who sent it, its
        words and its time do.
        """
        for cut in self._cut_off[source]:
            named = None if cut.target is None else self._mentioned(cut.target)
            send = Send(
                within=cut.within,
                call=cut.call,
                target=at.key,
                message=cut.message,
                timeout_ms=_timeout_ms(cut.call),
            )
            soon = at.step.time - cut.call.line.time <= _GIVEN_UP_MS
            if named in {None, at.key} and soon and _carries(send, at.step):
                self._cut_off[source].remove(cut)
                return send
        return None

    def _turn(self, at: Stepped, source: str) -> bool:
        pair = self._open[frozenset((source, at.key))]
        expecting = [open_ for open_ in pair if open_.expects_turn(at.key, source, at.step.time)]
        text = plain(at.step.text)
        exact = [open_ for open_ in expecting if open_.handed_on == text]
        chosen = exact or (expecting if self._was_said(source, text, at.step.time) else [])
        if not chosen:
            return False
        first = _longest_waiting(chosen)
        first.turns.append(Turn(at=at, stale=not exact, rivals=len(chosen) - 1))
        return True

    def _announce(self, at: Stepped, source: str) -> None:
        pair = self._open[frozenset((source, at.key))]
        expecting = [
            open_
            for open_ in pair
            if (open_.requester, open_.target) == (source, at.key) and open_.last.at.step.time <= at.step.time
        ]
        if not expecting:
            self._leave(
                "announce step", at.step.message, f"no exchange of {source} with {at.key} waits for one"
            )
            return
        self._announced(at, expecting)

    def _unprompted(self, at: Stepped) -> None:
        """Take an answer to what no transcript has for the announce step of an exchange that has ended here."""
        expecting = [
            open_
            for pair in self._open.values()
            for open_ in pair
            if open_.target == at.key and 0 <= at.step.time - open_.last.at.step.end <= _GIVEN_UP_MS
        ]
        if expecting:
            self._announced(at, expecting)
        else:
            reason = f"run {at.step.unprompted} was asked something that the transcript does not have"
            self._leave("answer", at.step.message, reason)

    def _announced(self, at: Stepped, expecting: Sequence[Exchange]) -> None:
        first = _longest_waiting(expecting)
        first.announce = Turn(at=at, rivals=len(expecting) - 1)
        self._open[frozenset((first.requester, first.target))].remove(first)

    def _orphan(self, at: Stepped, source: str) -> None:
        if self._was_said(source, plain(at.step.text), at.step.time):
            reason = f"{source} had said this before, but no exchange with it waits for a turn"
            self._leave("inter-session message", at.step.message, reason)
            return
        self._begin(Exchange(send=None, requester=source, primary=Turn(at=at)))

    def _begin(self, exchange: Exchange) -> None:
        self._found.exchanges.append(exchange)
        pair = self._open[frozenset((exchange.requester, exchange.target))]
        # With a new exchange under way nobody waits for what was given up; keeping it would only be in the way.
        now = exchange.primary.at.step.time
        pair[:] = [open_ for open_ in pair if now - open_.last.at.step.end <= _GIVEN_UP_MS]
        if exchange.goes_on:
            pair.append(exchange)

    def _was_said(self, key: str, text: str, time: int) -> bool:
        return any(said == text for end, said in self._said[key] if end <= time)

    def _leave(self, what: str, line: Line, reason: str) -> None:
        self._found.unattributed.append(Unattributed(what=what, where=str(line), reason=reason))


def _timeout_ms(call: Call) -> int:
    seconds = call.arguments.get("timeoutSeconds")
    if isinstance(seconds, int | float) and 0 <= seconds <= _MOST_TIMEOUT_MS:
        return min(int(seconds) * 1000, _MOST_TIMEOUT_MS)
    return _DEFAULT_TIMEOUT_MS


def _carries(send: Send, step: Step) -> bool:
    """Whether a step is the message of a send: OpenClaw puts a greeting in the place of a bare `/new`."""
    if step.time < send.call.line.time or (send.latest is not None and step.time > send.latest):
        return False
    reset = _RESET.fullmatch(send.message)
    if reset is None:
        return step.spoken == send.message
    return (
        step.spoken == reset["text"].strip(WHITE_SPACE)
        if reset["text"]
        else step.spoken.startswith(_GREETING)
    )


def _longest_waiting(exchanges: Sequence[Exchange]) -> Exchange:
    """Return the exchange whose last step ended first."""
    return min(exchanges, key=lambda exchange: exchange.last.at.step.end)


def inter_session(steps: Iterable[Stepped]) -> int:
    """Count the messages that came from other sessions."""
    return sum(1 for at in steps if at.source is not None)
