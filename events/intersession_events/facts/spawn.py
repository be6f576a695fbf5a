"""What can have happened to a spawned sub-agent. Stream `spawn:<id>`, shared words from `parts.py`."""

import re
from typing import ClassVar, Final, Literal

import msgspec

from intersession_events.facts.base import Fact, Said, Whole
from intersession_events.facts.chain import Budget
from intersession_events.facts.exchange import ExchangeAccepted, RunStatus
from intersession_events.facts.message import Usage
from intersession_events.facts.parts import (
    AnnounceDecided,
    AnnounceRequested,
    AttachmentsReady,
    Deciding,
    ResultHanded,
    SpawnClosed,
    TurnRequested,
    parts_of,
)
from intersession_events.facts.session import Route

__all__ = [
    "AttachedFile",
    "AttachmentRemovalFailed",
    "Attachments",
    "AttachmentsRemoved",
    "ChildArchived",
    "ChildEnded",
    "RunAsked",
    "SpawnAccepted",
    "SpawnEvent",
    "ThreadAsked",
    "ThreadOpened",
    "run_asked_in",
    "without_measures",
]


class AttachedFile(Fact, frozen=True, kw_only=True):
    """A file handed to a child: what is known of it. Its content is in no log and no transcript (ATT-4)."""

    name: str
    bytes: Whole
    sha256: str
    mime_type: str | None = None


class Attachments(Fact, frozen=True, kw_only=True):
    """What a child is given, and where (ATT-5): in `directory` below `root`, its agent's workspace.

    `retain`: what is there outlives the announce of a child that is kept, up to its archiving. `withheld`: an agent did again
    in a fork what it had done then, and the log has no contents of files (ATT-4): they are named, and not there.
    """

    root: str
    directory: str
    files: tuple[AttachedFile, ...]
    retain: bool = False
    withheld: bool = False


class ThreadAsked(Fact, frozen=True, kw_only=True):
    """The thread that a channel is asked for (SPAWN-12). `key` is the same on every attempt; times of 0 are no limit."""

    channel: str
    to: str
    title: str
    key: str
    account: str | None = None
    idle_ms: Whole = 0
    max_age_ms: Whole = 0


class SpawnAccepted(Fact, frozen=True, kw_only=True):
    """A sub-agent was accepted; the child's key is fixed by the run's id (SPAWN-6).

    `task` stands here only until the child starts with what it waits for, and in an import: the run `run_id` has it.
    `route` is the requester's at this moment (SPAWN-9). Times in milliseconds; `run_timeout_ms` 0 is no
    limit and counts from the start of the run, `archive_after_ms` 0 never archives. With `attachments` or a `thread` the child
    starts when those are there; `mount_path` is where it is told its files would be mounted. `budget` is its run's.
    `announce_timeout_ms` limits the child's announce turn, `result_timeout_ms` the requester's run on the result. With
    `announce_details` people are shown the stats and the error's text (SPAWN-10).
    """

    topic: ClassVar[str] = "spawn_accepted.1"

    spawn_id: str
    run_id: str
    child: str
    child_session_id: str
    agent_id: str
    message_id: str
    task: Said | None = None
    caller: str = "operator"
    requester: str | None = None
    requester_session_id: str | None = None
    requester_run_id: str | None = None
    requester_channel: str | None = None
    route: Route | None = None
    label: str | None = None
    model: str | None = None
    thinking: str | None = None
    mode: Literal["run", "session"] = "run"
    cleanup: Literal["delete", "keep"] = "keep"
    run_timeout_ms: Whole = 0
    announce_timeout_ms: Whole = 60_000
    result_timeout_ms: Whole = 600_000
    announce_details: bool = False
    archive_after_ms: Whole = 0
    sandboxed: bool = False
    depth: Whole = 1
    idempotency_key: str | None = None
    request_digest: str | None = None
    inferred: bool = False
    evidence: Said | None = None
    budget: Budget | None = None
    attachments: Attachments | None = None
    mount_path: str | None = None
    thread: ThreadAsked | None = None


class ThreadOpened(Deciding, frozen=True, kw_only=True):
    """The channel opened the thread that was asked for; the child's session is bound to it (SPAWN-12).

    `withheld`: the channel is one of a fork and sealed, and was not asked. The thread has a name of the fork's own (FORK-5).
    """

    topic: ClassVar[str] = "thread_opened.1"

    route: Route
    withheld: bool = False


class AttachmentsRemoved(Fact, frozen=True, kw_only=True):
    """The files, and whatever else stood in their directory, are gone (ATT-5)."""

    topic: ClassVar[str] = "attachments_removed.1"

    directory: str


class AttachmentRemovalFailed(Fact, frozen=True, kw_only=True):
    """The files could not be removed; that is not tried again (ATT-5)."""

    topic: ClassVar[str] = "attachment_removal_failed.1"

    directory: str
    error: str


class ChildEnded(Deciding, frozen=True, kw_only=True):
    """The child's task run ended (SPAWN-10).

    `said` is whether it replied with a text. `text` is that where somebody tells of it: the run has it, and it stands here only in an
    import. `in_transcript`: it is that of the last message of the run. `last_tool_result` stands in for an empty reply.
    """

    topic: ClassVar[str] = "child_ended.1"

    run_id: str
    status: RunStatus = "ok"
    said: Literal["text", "nothing"] = "text"
    in_transcript: bool = True
    text: Said | None = None
    error: Said | None = None
    last_tool_result: Said | None = None
    usage: Usage | None = None
    model: str | None = None
    started_ms: Whole | None = None
    ended_ms: Whole | None = None


class ChildArchived(Fact, frozen=True, kw_only=True):
    """The child left the list (SPAWN-11); its record stays in the log."""

    topic: ClassVar[str] = "child_archived.1"

    child: str
    reason: Literal["cleanup", "expired", "deleted"]


SpawnEvent = (
    SpawnAccepted
    | ThreadOpened
    | AttachmentsReady
    | ChildEnded
    | AnnounceRequested
    | AnnounceDecided
    | ResultHanded
    | SpawnClosed
    | ChildArchived
    | AttachmentsRemoved
    | AttachmentRemovalFailed
)
"""What the stream of a spawn says: its events, and what follows in them."""

RunAsked = ExchangeAccepted | TurnRequested | AnnounceRequested | SpawnAccepted | ResultHanded
"""What asks for a run in the stream of an exchange or a spawn: each has the run's id, and its message's."""


def run_asked_in(event: msgspec.Struct) -> RunAsked | None:
    """Return what asks for a run in an event: itself, or what follows in it; None where nothing does."""
    for part in parts_of(event):
        if isinstance(part, RunAsked):
            return part
    return None


_RUNTIME: Final = re.compile(r"^(Stats: runtime) [^•\n]*", re.MULTILINE)
_TRANSCRIPT: Final = re.compile(r"^(Stats: .*) • transcript [^•\n]*", re.MULTILINE)


def without_measures(text: str) -> str:
    """Return the result of a sub-agent without how long it took and where its transcript lies: what no two logs have in common."""
    return _TRANSCRIPT.sub(r"\1", _RUNTIME.sub(r"\1 <time> ", text))
