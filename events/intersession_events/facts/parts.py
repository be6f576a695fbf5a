"""What a decision on an exchange or a spawn can say beside what it begins with, and how it is part of that event.

What one decision says of one stream is one event: a turn's end with the next turn that it asks for, or with the end of the
loop and the announce. What follows is in the event's `then`. It is an event of its own only where nothing else begins the
decision.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, Literal, TypeVar, get_args

import msgspec

from intersession_events.facts.base import Budget, Digest, Fact, Mark, Remark, Root, Said, Whole, Work
from intersession_events.facts.message import Usage
from intersession_events.facts.reasons import (
    HELD_TEXTS,
    LOOP_ENDS,
    SILENCES,
    STATUSES,
    CloseReason,
    HeldText,
    HoldBefore,
    LoopEnd,
    RunStatus,
    SpawnClose,
    closed,
    counted,
    loop_end,
    noted,
)
from intersession_events.facts.session import Route
from intersession_events.facts.words import NO_TEXT, OF_RUN, Frame, Words

__all__ = [
    "PARTS",
    "AnnounceDecided",
    "AnnounceRequested",
    "AttachmentsReady",
    "Deciding",
    "ExchangeClosed",
    "ExchangeHeld",
    "FlowAccepted",
    "FlowAnswered",
    "FlowClosed",
    "HoldSource",
    "LoopEnded",
    "Part",
    "ReplyKind",
    "ResultHanded",
    "RunAsked",
    "SpawnClosed",
    "Then",
    "TurnRequested",
    "joined",
    "kinds_of",
    "parts_of",
    "run_asked_in",
    "with_parts",
    "words_of",
]

ReplyKind = Literal["text", "skip", "nothing"]

E = TypeVar("E", bound=msgspec.Struct)

HoldSource = Literal["setting", "session", "run", "rule"]
"""What ordered a hold: the configuration, a session that is held, this exchange, or a rule of the host's."""


class Deciding(Fact, frozen=True, kw_only=True):
    """An event that can hold further parts of the same decision, in `then`."""

    then: "Then | None" = None


class RunAsked(Fact, frozen=True, kw_only=True):
    """A session is asked for the run `run_id`, which answers the message `message_id`."""

    run_id: str
    message_id: str

    @property
    def asked(self) -> str:
        """The session that is asked."""
        raise NotImplementedError

    @property
    def place(self) -> str:
        """The place of the answer in its exchange or spawn: `reply`, `turn:2`, `announce`, `result`."""
        return "reply"


class FlowAccepted(RunAsked, frozen=True, kw_only=True):
    """A message for another session, or the task of a sub-agent, was accepted; the run `run_id` has its text.

    `caller` and the fields of the `requester` name the sender; `requester` is None for a call of the operator. `budget`
    is the state of its causal chain, this step included, and its limits. `request_digests` are as those of its run.
    `inferred`: an import found it in a transcript, by the `evidence`.
    """

    caller: str = "operator"
    requester: str | None = None
    requester_session_id: str | None = None
    requester_run_id: str | None = None
    requester_channel: str | None = None
    route: Route | None = None
    idempotency_key: str | None = None
    request_digest: str | None = None
    request_digests: tuple[Digest, ...] = ()
    inferred: bool = False
    evidence: Remark | None = None
    budget: Budget | None = None

    @property
    def digests(self) -> tuple[str | None, ...]:
        """The digests by which the request is known again."""
        return self.request_digests or (self.request_digest,)

    @property
    def asked_text(self) -> str | None:
        """What it was asked, where that stands here."""
        raise NotImplementedError

    @property
    def stream(self) -> str:
        """The stream that it begins."""
        raise NotImplementedError

    def with_text(self, text: str) -> "FlowAccepted":
        """Return it with what was asked."""
        raise NotImplementedError

    @property
    def asker(self) -> str:
        """Who asked: a session by its key, else `operator` or a credential; `unknown` where an import does not show."""
        return self.requester or self.caller

    @property
    def doer(self) -> str | None:
        return None if self.inferred else self.asker

    @property
    def begun_by(self) -> Root:
        return "import" if self.inferred else "operator"


class FlowAnswered(Deciding, frozen=True, kw_only=True):
    """A run of an exchange or a spawn ended: with a text for the other side, or without.

    `text`, `error` and `usage` are the run's. The session's events have them: here they stand only in an import, which
    may lack such a run, and where a reader adds them. `in_transcript`: the text is that of the run's last message.
    """

    run_id: str
    status: RunStatus = "ok"
    said: ReplyKind = "text"
    in_transcript: bool = True
    text: Said | None = None
    error: Remark | None = None
    usage: Usage | None = None

    def _answer(self, who: str | None, to: str | None, how: str) -> Words:
        if self.status != "ok":
            brief = f"{self.status}: {self.error or self.text or NO_TEXT}"
            error = f": {self.error}" if self.error else ""
            return Words(who, to, brief, f"{STATUSES[self.status]}{error}", self.text)
        if self.text is None and self.said != "nothing":
            return Words(who, to, OF_RUN, how, kind="said")
        if self.text is None:
            return Words(who, to, NO_TEXT, f"{how}: answers without a text")
        return Words(who, to, self.text or NO_TEXT, how, self.text, "said")


class TurnRequested(RunAsked, frozen=True, kw_only=True):
    """Turn `turn` of the loop was asked of `speaker`; its message and run are in the same append."""

    topic: ClassVar[str] = "turn_requested.1"

    turn: Whole
    speaker: str

    @property
    def asked(self) -> str:
        return self.speaker

    @property
    def place(self) -> str:
        return f"turn:{self.turn}"

    def in_words(self, at: Frame) -> Words:
        turn, speaker = f"turn {self.turn}", at.named(self.speaker)
        after = f"in {turn}: {speaker} has been asked, and has not answered yet"
        return Words(None, self.speaker, turn, step=f"{turn} is asked of {speaker}", after=after)


class LoopEnded(Deciding, frozen=True, kw_only=True):
    """The loop asks for no further turn. `limit` names the setting that ended it, `note` says more.

    `used` is the amount that the causal chain had used, for a limit of a chain: in runs, tokens, millionths of money or
    seconds.
    """

    topic: ClassVar[str] = "loop_ended.1"
    mark: ClassVar[Mark | None] = "end"

    reason: LoopEnd
    turns: Whole
    limit: str | None = None
    note: Remark | None = None
    used: Whole | None = None

    def in_words(self, at: Frame) -> Words:
        limit = "" if self.limit is None else f" ({self.limit})"
        # Programs read these words: `1 turns`.
        brief = f"{self.reason}{limit} after {self.turns} turns{noted(self.note)}"
        how = loop_end(self.reason, self.turns, self.limit, self.note)
        why = LOOP_ENDS[self.reason]
        after = f"after the loop: it ended after {counted(self.turns, 'turn')}, {why}"
        return Words(None, None, brief, how, step=f"the loop ends: {why}", after=after)


class AnnounceRequested(RunAsked, frozen=True, kw_only=True):
    """The announcing session was asked for its announce text (ANN-1, SPAWN-9)."""

    topic: ClassVar[str] = "announce_requested.1"

    speaker: str

    @property
    def asked(self) -> str:
        return self.speaker

    @property
    def place(self) -> str:
        return "announce"

    def in_words(self, at: Frame) -> Words:
        speaker = at.named(self.speaker)
        after = f"at the announce: {speaker} has been asked for it, and has not answered yet"
        return Words(None, self.speaker, "announce", step=f"the announce is asked of {speaker}", after=after)


class AnnounceDecided(Deciding, frozen=True, kw_only=True):
    """The text of the announce is decided: that of the run `run_id`, or, if `edited_by` is set, that of the release.

    `silent`: nothing is announced, and `why` says for which reason; `limit` is the setting that kept the turn from being
    asked. With a `delivery_id` the outbox has the text: the delivery's first event is in the same append. `text` and
    `usage` of an exchange stand here only in an import: the run has them. The announce of a sub-agent comes from its run
    `run_id` (None if that has no text), or from the child's reply: the delivery has it, or the message for the requester,
    and `text` only where there is neither. `stats` is the line of statistics of a sub-agent's announce, where `text` is
    for people and leaves it out. `edited_by` wrote the text instead of the agent (LIVE-1).
    """

    topic: ClassVar[str] = "announce_decided.1"

    text: Said | None = None
    silent: bool = False
    why: Literal[
        "text", "announce_skip", "no_text", "run_failed", "not_routed", "child_failed", "limit", "dropped"
    ] = "text"
    limit: str | None = None
    delivery_id: str | None = None
    run_id: str | None = None
    usage: Usage | None = None
    stats: Remark | None = None
    edited_by: str | None = None

    def in_words(self, at: Frame) -> Words:
        step, after = "the announce is decided", "after the announce was decided"
        if self.silent:
            # An exchange says of the turn that failed which run it was.
            asked = self.why != "run_failed" or self.run_id is not None
            why = SILENCES[self.why] if asked else "the announce turn could not be asked for"
            how = f"Nothing is announced: {why}."
            return Words(None, None, self.why, how, step=step, after=f"{after}: nothing is announced, {why}")
        how = "announces" if self.edited_by is None else f"announces, in the words of {self.edited_by}"
        after = f"{after}: there is a text to announce"
        return Words(at.acting, None, self.text or OF_RUN, how, self.text, "said", step, after)


class ExchangeHeld(Fact, frozen=True, kw_only=True):
    """The exchange has stopped, and waits for a release (LIVE-1).

    `run_id` is the run whose text waits: a text of `speaker` for the session `to`, or for a channel where that is None.
    `text` is that text where a reader adds it: it is not stored here. `turn` is the turn of the text, 0 for the reply of
    the first run. `next_turn` is the turn that it would ask for; None if the loop would end there: then `next_end`,
    `next_limit`, `next_used` and `next_note` are the fields of that `LoopEnded`. `by` ordered the hold, `order` is the id
    of that order, `note` comes from a rule.
    """

    topic: ClassVar[str] = "exchange_held.1"
    mark: ClassVar[Mark | None] = "note"

    hold_id: str
    step: HeldText
    speaker: str
    since_ms: Whole
    before: HoldBefore
    source: HoldSource
    by: str
    order: str
    to: str | None = None
    text: Said | None = None
    turn: Whole = 0
    next_turn: Whole | None = None
    note: Remark | None = None
    run_id: str | None = None
    next_end: LoopEnd | None = None
    next_limit: str | None = None
    next_note: Remark | None = None
    next_used: Whole | None = None

    @property
    def doer(self) -> str | None:
        return None  # a rule, or a setting

    def in_words(self, at: Frame) -> Words:
        note, what, speaker = noted(self.note), HELD_TEXTS[self.step], at.named(self.speaker)
        return Words(
            self.speaker, self.to, f"{self.step} held by {self.by}{note}: {self.text or OF_RUN}",
            f"Held: {what} waits for a release, as {self.by} wants{note}.",
            step=f"{what} of {speaker} is held",
            after=f"held: {what} of {speaker} waits for a release",
        )  # fmt: skip


class FlowClosed(Fact, frozen=True, kw_only=True):
    """An exchange or a spawn is over. `limit` is the guard that ended it, if one did; `used` is as in `LoopEnded`."""

    mark: ClassVar[Mark | None] = "end"

    reason: CloseReason | SpawnClose
    note: Remark | None = None
    limit: str | None = None
    used: Whole | None = None

    def _close(self, over: str) -> Words:
        why = closed(self.reason, limit=self.limit)
        return Words(
            None, None, f"{self.reason}{noted(self.note)}", f"The {self.ends} is over: {why}.", kind="end",
            step=f"the end: {why}",
            after=f"after the end: {over}, {why}",
            reason=why,
        )  # fmt: skip


class ExchangeClosed(FlowClosed, frozen=True, kw_only=True):
    """The exchange is over. `limit` is the setting that ended it, if one did; `used` is as in `LoopEnded`."""

    topic: ClassVar[str] = "exchange_closed.1"
    ends: ClassVar[Work | None] = "exchange"

    reason: CloseReason

    def in_words(self, at: Frame) -> Words:
        return self._close(f"{at.asker} and {at.asked} are done")


class AttachmentsReady(Fact, frozen=True, kw_only=True):
    """The files are in their place, the manifest last; the child starts (ATT-3).

    `withheld`: the log is a fork, which lacks their contents. They have names only (FORK-5).
    """

    topic: ClassVar[str] = "attachments_ready.1"
    mark: ClassVar[Mark | None] = "note"

    directory: str
    count: Whole
    total_bytes: Whole
    manifest_sha256: str
    withheld: bool = False

    def in_words(self, at: Frame) -> Words:
        files, size, place = f"{self.count} files", f"{self.total_bytes} bytes", self.directory
        if self.withheld:
            how = f"would have {files} ({size}): a fork does not have their contents"
            return Words(at.acting, None, f"{files}, {size}, not in this fork", how)
        return Words(at.acting, None, f"{files}, {size}, in {place}", f"has {files} ({size}) in {place}")


class ResultHanded(RunAsked, frozen=True, kw_only=True):
    """The result was recorded once as a message of the requester's session, and its agent runs on it (SPAWN-9).

    With a `limit` the causal chain had no budget left for that run, by this setting: the message is there without a run.
    """

    topic: ClassVar[str] = "result_handed.1"

    requester: str
    limit: str | None = None

    @property
    def asked(self) -> str:
        return self.requester

    @property
    def place(self) -> str:
        return "result"

    def in_words(self, at: Frame) -> Words:
        brief = f"result, {f'run {self.run_id}' if self.limit is None else f'no run: {self.limit}'}"
        return Words(
            at.acting, self.requester, brief, "hands over the result", kind="said",
            step=f"the result is handed to {at.asker}",
            after=f"after the result was handed over: {at.asker} has it, and has not answered yet",
        )  # fmt: skip


class SpawnClosed(FlowClosed, frozen=True, kw_only=True):
    """The spawn's announce is final. `not_started`: the child could not be given what it needs; `code` and `note` say why.

    `limit` is a guard of the causal chain that kept a run from being asked for; `used` is as in `LoopEnded`.
    """

    topic: ClassVar[str] = "spawn_closed.1"
    ends: ClassVar[Work | None] = "spawn"

    reason: SpawnClose
    code: str | None = None

    def in_words(self, at: Frame) -> Words:
        return self._close(f"the spawn of {at.asked} is over")


Part = (
    AttachmentsReady
    | TurnRequested
    | LoopEnded
    | AnnounceRequested
    | ExchangeHeld
    | AnnounceDecided
    | ResultHanded
    | ExchangeClosed
    | SpawnClosed
)
"""What can follow in an event, in the order in which it is decided."""


class Then(Fact, frozen=True, kw_only=True):
    """The parts that follow in an event, by the names of their kinds. Each is decided on the state after the part before."""

    attachments_ready: AttachmentsReady | None = None
    turn_requested: TurnRequested | None = None
    loop_ended: LoopEnded | None = None
    announce_requested: AnnounceRequested | None = None
    exchange_held: ExchangeHeld | None = None
    announce_decided: AnnounceDecided | None = None
    result_handed: ResultHanded | None = None
    exchange_closed: ExchangeClosed | None = None
    spawn_closed: SpawnClosed | None = None


PARTS: Final[Mapping[str, type[Part]]] = dict(zip(Then.__struct_fields__, get_args(Part), strict=True))
_NAMES: Final[Mapping[type[msgspec.Struct], str]] = {part: name for name, part in PARTS.items()}


def parts_of(event: E) -> tuple[E | Part, ...]:
    """Return what an event begins with, and then what follows in it, each by itself, as they were decided."""
    if not isinstance(event, Deciding) or event.then is None:
        return (event,)
    return (msgspec.structs.replace(event, then=None), *filter(None, msgspec.structs.astuple(event.then)))


def kinds_of(event: msgspec.Struct) -> tuple[type[msgspec.Struct], ...]:
    """Return the kinds of the parts of an event."""
    if not isinstance(event, Deciding) or event.then is None:
        return (type(event),)
    then: tuple[Part | None, ...] = msgspec.structs.astuple(event.then)
    return (type(event), *map(type, filter(None, then)))


def with_parts(event: E, change: Callable[[Part], Part]) -> E:
    """Return an event with something else for each part that follows in it; the same one, if each is given back as it is."""
    if not isinstance(event, Deciding) or event.then is None:
        return event
    changed = {
        name: other
        for name in PARTS
        if (part := getattr(event.then, name)) is not None and (other := change(part)) is not part
    }
    if not changed:
        return event
    return msgspec.structs.replace(event, then=msgspec.structs.replace(event.then, **changed))


def joined(decided: Sequence[E]) -> tuple[E, ...]:
    """Return what one decision says of the stream of an exchange or a spawn as one event; of other streams as it is."""
    if len(decided) < 2 or not isinstance(decided[0], Deciding):  # noqa: PLR2004 - nothing follows
        return tuple(decided)
    then = msgspec.structs.replace(Then(), **{_NAMES[type(part)]: part for part in decided[1:]})
    return (msgspec.structs.replace(decided[0], then=then),)


_BARE: Final = Frame()


def words_of(event: Fact, at: Frame = _BARE) -> Words:
    """Return an event in words. What follows in it is told in brief."""
    if isinstance(event, Deciding) and event.then is not None:
        return _together([(part, part.in_words(at)) for part in parts_of(event)])
    return event.in_words(at)


def _together(parts: Sequence[tuple[Fact, Words]]) -> Words:
    """Return what an event begins with, and what follows in it, in words. How all stands is told without what it asks for."""
    found = [words for _, words in parts]
    after = [words.after for part, words in parts if words.after and not isinstance(part, RunAsked)]
    return found[0]._replace(
        to=next((words.to for words in found if words.to), None),
        brief="; ".join(words.brief for words in found),
        step=", and ".join(words.step for words in found if words.step),
        after=after[-1] if after else "",
    )


def run_asked_in(event: msgspec.Struct) -> RunAsked | None:
    """Return what asks for a run in an event: itself, or what follows in it; None where nothing does."""
    for part in parts_of(event):
        if isinstance(part, RunAsked):
            return part
    return None
