"""The reasons that events name, and each as a part of a sentence: why a loop ended, how a flow was closed, why a run failed."""

from collections.abc import Mapping
from typing import Final, Literal

__all__ = [
    "ArchiveReason",
    "CloseReason",
    "FailureCode",
    "HeldText",
    "HoldBefore",
    "LoopEnd",
    "OpenedBy",
    "Release",
    "RunStatus",
    "SpawnClose",
]


OpenedBy = Literal["person", "operator", "send", "spawn", "import"]
ArchiveReason = Literal["deleted", "cleanup", "expired", "reset"]
FailureCode = Literal[
    "backend",
    "bad_reply",
    "reply_too_large",
    "timeout",
    "interrupted",
    "target_gone",
    "store",
    "no_agent",
    "limit",
]
RunStatus = Literal["ok", "error", "timeout", "aborted", "interrupted"]
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
SpawnClose = Literal[
    "no_route",
    "announced",
    "silent",
    "handed_over",
    "returned",
    "cancelled",
    "announce_failed",
    "announce_denied",
    "delivery_unknown",
    "withheld",
    "requester_gone",
    "not_started",
    "inferred",
]
HoldBefore = Literal["next", "reply", "every-turn", "announce"]
"""Before what an exchange is to stop: whichever text goes on next, the next reply, every text, the announce."""
HeldText = Literal["reply", "announce"]
Release = Literal["go_on", "edit", "drop", "end"]

LOOP_ENDS: Final[Mapping[LoopEnd, str]] = {
    "reply_skip": "nothing more to say (REPLY_SKIP)",
    "no_text": "somebody answered without a text",
    "turn_limit": "the limit of turns was reached",
    "turn_failed": "a turn failed",
    "turn_timeout": "a turn took too long",
    "policy_denied": "the send policy forbids it now",
    "one_way": "this kind of session gets no replies back",
    "no_requester": "the operator asked, so nobody replies back",
    "no_agent": "no agent was there for the next turn",
    "requester_gone": "the asking session is gone, or was reset",
    "target_gone": "the asked session is gone, or was reset",
    "hop_limit": "the chain of exchanges was too long",
    "revisit_limit": "the chain came back to one session too often",
    "run_limit": "the chain had too many runs",
    "token_limit": "the chain used too many tokens",
    "cost_limit": "the chain cost too much",
    "wall_limit": "the chain took too long",
    "aborted": "somebody aborted it",
    "dropped": "the reply was held, and dropped at its release",
    "ended": "it was held, and ended at its release",
    "inferred": "the imported record has no further turn",
}

CLOSES: Final[Mapping[CloseReason | SpawnClose, str]] = {
    "announced": "announced",
    "silent": "nothing announced",
    "no_route": "nowhere to announce to",
    "no_reply": "there was no reply",
    "run_failed": "the run failed",
    "announce_failed": "the announce could not be delivered",
    "announce_denied": "the send policy forbade the announce",
    "delivery_unknown": "it is not known whether the announce was delivered",
    "withheld": "the announce would be delivered (a fork's channels are sealed)",
    "aborted": "aborted",
    "dropped": "the reply was held, and dropped at its release",
    "ended": "it was held, and ended at its release",
    "target_gone": "the asked session is gone, or was reset",
    "handed_over": "the result was handed to the asking session",
    "returned": "the call that waited has the result",
    "cancelled": "the asking session cancelled it",
    "requester_gone": "the asking session is gone, or was reset",
    "not_started": "the sub-agent could not be given what it needs",
    "inferred": "as far as the imported record goes",
}

SHORT_ENDS: Final[Mapping[LoopEnd | CloseReason | SpawnClose | RunStatus, str]] = {
    "reply_skip": "nothing more to say",
    "turn_limit": "limit of turns",
    "announced": "announced",
    "silent": "nothing announced",
    "run_failed": "the run failed",
    "timeout": "took too long",
    "no_reply": "no reply",
    "aborted": "aborted",
    "withheld": "the announce is withheld",
    "handed_over": "the result was handed over",
    "returned": "the result was returned",
    "cancelled": "cancelled",
}
"""The ends that people look for, each in a few words, for lists and tables."""


def closed(reason: CloseReason | SpawnClose, *, sent: bool | None = None, limit: str | None = None) -> str:
    """Return how a flow was closed. `sent`: a text of it went to the outbox; None where that is not known. `limit` is a guard's.

    One reason covers an announce that its channel gave up on and one that was never made; another one no route, with or without
    a host that listens for itself.
    """
    match reason:
        case "announce_failed" if limit is not None:
            return "a limit kept the announce from being asked for"
        case "announce_failed" if not sent:
            return f"the announce could not be made{', or not be delivered' if sent is None else ''}"
        case "no_route" if sent:
            return "no route to announce to, the host alone has the text"
        case _:
            return CLOSES[reason]


STATUSES: Final[Mapping[RunStatus, str]] = {
    "ok": "done",
    "error": "failed",
    "timeout": "took too long and was stopped",
    "aborted": "was aborted",
    "interrupted": "was cut off",
}

FAILURES: Final[Mapping[FailureCode, str]] = {
    "backend": "failed",
    "bad_reply": "gave no proper reply",
    "reply_too_large": "said too much",
    "timeout": "took too long and was stopped",
    "interrupted": "was cut off once too often",
    "target_gone": "was gone before it could start",
    "store": "could not be recorded",
    "no_agent": "has no agent",
    "limit": "was not started, its chain of messages has used up what it may",
}

SILENCES: Final[Mapping[str, str]] = {
    "text": "",
    "announce_skip": "the agent answered ANNOUNCE_SKIP",
    "no_text": "the agent answered without a text",
    "run_failed": "the announce turn failed",
    "not_routed": "there is nowhere to announce to",
    "child_failed": "the task failed",
    "limit": "the chain of messages has used up what it may",
    "dropped": "the text was held, and dropped at its release",
}

HELD_BEFORE: Final[Mapping[HoldBefore, str]] = {
    "next": "whatever goes on next",
    "reply": "the next reply",
    "every-turn": "every text",
    "announce": "the announce",
}

HELD_TEXTS: Final[Mapping[HeldText, str]] = {"reply": "the reply", "announce": "the announce"}

RELEASES: Final[Mapping[Release, str]] = {
    "go_on": "lets it go on",
    "edit": "lets it go on with another text",
    "drop": "drops what was held",
    "end": "ends it",
}

OPENINGS: Final[Mapping[OpenedBy, str]] = {
    "person": "a person speaks",
    "operator": "the operator asks for it",
    "send": "another session sends it a message",
    "spawn": "another session spawns it",
    "import": "it was imported",
}

ARCHIVALS: Final[Mapping[ArchiveReason, str]] = {
    "deleted": "it was deleted",
    "cleanup": "its work was done and its cleanup is `delete`",
    "expired": "it was idle long enough",
    "reset": "it was reset",
}


def loop_end(reason: LoopEnd, turns: int, limit: str | None = None, note: str | None = None) -> str:
    """Return why a loop ended, and after how many turns."""
    if turns == 0 and reason in {"no_requester", "one_way"}:
        return f"No ping-pong: {LOOP_ENDS[reason]}{told_more(limit, note)}."
    return f"The ping-pong ended after {counted(turns, 'turn')}: {LOOP_ENDS[reason]}{told_more(limit, note)}."


def counted(number: int, what: str) -> str:
    """Return a number of things: `1 turn`, `2 turns`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


_FIELD: Final = "sessionKey: "
"""What a session's refusal of a step names first: the field of a call, which nobody has made here."""


def plain_note(note: str | None) -> str | None:
    """Return a note as people read it."""
    return None if note is None else note.removeprefix(_FIELD)


def told_more(limit: str | None, note: str | None) -> str:
    """Return what is said beside a reason, in brackets: which limit it was, and a note."""
    parts = [part for part in (limit, plain_note(note)) if part]
    return f" ({', '.join(parts)})" if parts else ""


def noted(note: str | None) -> str:
    """Return a note behind a reason."""
    return "" if note is None else f", {plain_note(note)}"


def by(who: str | None) -> str:
    """Return ` by` who did something; nothing where the log does not say who."""
    return "" if who is None else f" by {who}"
