"""What a decision on an exchange or a spawn can say beside what it begins with, and how it is part of that event.

What one decision says of one stream is one event: a turn's end with the next turn that it asks for, or with the end of the
loop and the announce. What follows is in the event's `then`. It is an event of its own only where nothing else begins the
decision.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, Literal, TypeVar, get_args

import msgspec

from intersession_events.facts.base import Fact, Said, Whole
from intersession_events.facts.message import Usage

__all__ = [
    "PARTS",
    "AnnounceDecided",
    "AnnounceRequested",
    "AttachmentsReady",
    "CloseReason",
    "Deciding",
    "ExchangeClosed",
    "ExchangeHeld",
    "HeldText",
    "HoldBefore",
    "HoldSource",
    "LoopEnd",
    "LoopEnded",
    "Part",
    "ResultHanded",
    "SpawnClose",
    "SpawnClosed",
    "Then",
    "TurnRequested",
    "joined",
    "kinds_of",
    "parts_of",
    "with_parts",
]

E = TypeVar("E", bound=msgspec.Struct)

LoopEnd = Literal[
    "reply_skip",
    "no_text",
    "turn_limit",
    "turn_failed",
    "turn_timeout",
    "policy_denied",
    "one_way",
    "no_requester",
    "no_agent",
    "requester_gone",
    "target_gone",
    "hop_limit",
    "revisit_limit",
    "run_limit",
    "token_limit",
    "cost_limit",
    "wall_limit",
    "aborted",
    "dropped",
    "ended",
    "inferred",
]
CloseReason = Literal[
    "announced",
    "silent",
    "no_route",
    "no_reply",
    "run_failed",
    "announce_failed",
    "announce_denied",
    "delivery_unknown",
    "withheld",
    "target_gone",
    "aborted",
    "dropped",
    "ended",
    "inferred",
]
HoldBefore = Literal["next", "reply", "every-turn", "announce"]
"""Before what an exchange is to stop: whichever text goes on next, the next reply, every text, the announce."""
HeldText = Literal["reply", "announce"]
HoldSource = Literal["setting", "session", "run", "rule"]
"""What ordered a hold: the configuration, a session that is held, this exchange, or a rule of the host's."""
SpawnClose = Literal[
    "no_route",
    "announced",
    "silent",
    "handed_over",
    "announce_failed",
    "announce_denied",
    "delivery_unknown",
    "withheld",
    "requester_gone",
    "not_started",
    "inferred",
]


class Deciding(Fact, frozen=True, kw_only=True):
    """An event that more of its decision can follow in."""

    then: "Then | None" = None


class TurnRequested(Fact, frozen=True, kw_only=True):
    """Turn `turn` of the loop was asked of `speaker`; its message and run are in the same append."""

    topic: ClassVar[str] = "turn_requested.1"

    turn: Whole
    speaker: str
    run_id: str
    message_id: str


class LoopEnded(Deciding, frozen=True, kw_only=True):
    """No further turn will be asked for, and why. `limit` names the setting that tripped, `note` the rest.

    `used` is how much of it the causal chain had used, where it is a guard over one: in runs, tokens, millionths of money or
    seconds.
    """

    topic: ClassVar[str] = "loop_ended.1"

    reason: LoopEnd
    turns: Whole
    limit: str | None = None
    note: Said | None = None
    used: Whole | None = None


class AnnounceRequested(Fact, frozen=True, kw_only=True):
    """The announcing session was asked for its announce text (ANN-1, SPAWN-9)."""

    topic: ClassVar[str] = "announce_requested.1"

    speaker: str
    run_id: str
    message_id: str


class AnnounceDecided(Deciding, frozen=True, kw_only=True):
    """What will be announced: what the run `run_id` said, or, where it is `edited_by` somebody, what stands in the release.

    `silent`: nothing, and `why` says of which kind that silence is; `limit` is the setting that kept the turn for it from
    being asked. With a `delivery_id` the outbox has it: the delivery's first event is in the same append. `text` and `usage` of an
    exchange stand here only in an import: the run has them. What is announced of a sub-agent is made of what its run
    `run_id` said (none where it said nothing), or of the child's reply: the delivery has it, or the message that its requester is
    handed, and `text` only where there is neither.
    `stats` is the stats line of a sub-agent's announce, where `text` is for people and leaves it out.
    `edited_by` is who wrote the text instead of the agent (LIVE-1).
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
    stats: Said | None = None
    edited_by: str | None = None


class ExchangeHeld(Fact, frozen=True, kw_only=True):
    """The exchange has stopped, and waits for a release (LIVE-1).

    `run_id` is the run whose text would go on: the words of `speaker`, for the session `to`; None where they would go to a channel.
    `text` is that text where somebody tells of the hold: it is not stored here. `turn` is the turn that they are from, 0 for the reply of the first run; `next_turn` the one that they would be given with, None where none would follow:
    then `next_end` says why the loop would end, `next_limit` which setting tripped, `next_used` how much was used, and `next_note` the
    rest, as `LoopEnded` does.
    `by` ordered it, `order` tells this order from others, `note` is what a rule said.
    """

    topic: ClassVar[str] = "exchange_held.1"

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
    note: Said | None = None
    run_id: str | None = None
    next_end: LoopEnd | None = None
    next_limit: str | None = None
    next_note: Said | None = None
    next_used: Whole | None = None


class ExchangeClosed(Fact, frozen=True, kw_only=True):
    """The exchange is over, and how. `limit` is the setting that ended it, where one did; `used` is as in `LoopEnded`."""

    topic: ClassVar[str] = "exchange_closed.1"

    reason: CloseReason
    note: Said | None = None
    limit: str | None = None
    used: Whole | None = None


class AttachmentsReady(Fact, frozen=True, kw_only=True):
    """The files are in their place, the manifest last; the child starts (ATT-3).

    `withheld`: they are those of a fork, which has not their contents. They are named, and not there (FORK-5).
    """

    topic: ClassVar[str] = "attachments_ready.1"

    directory: str
    count: Whole
    total_bytes: Whole
    manifest_sha256: str
    withheld: bool = False


class ResultHanded(Fact, frozen=True, kw_only=True):
    """The result was put to the requester's session as a message, once, and its agent runs on it (SPAWN-9).

    With a `limit` the causal chain had nothing left for that run, by this setting: the message is there, and no run.
    """

    topic: ClassVar[str] = "result_handed.1"

    requester: str
    run_id: str
    message_id: str
    limit: str | None = None


class SpawnClosed(Fact, frozen=True, kw_only=True):
    """The spawn's announce is final, and how. `not_started`: what the child needs could not be had, `code` and `note` say why.

    `limit` is a guard over the causal chain that kept a run from being asked for; `used` is as in `LoopEnded`.
    """

    topic: ClassVar[str] = "spawn_closed.1"

    reason: SpawnClose
    note: Said | None = None
    limit: str | None = None
    code: str | None = None
    used: Whole | None = None


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
    """What follows in an event, each by the name of its kind. The next is decided of the state after the one before."""

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
