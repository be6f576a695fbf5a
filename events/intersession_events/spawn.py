"""What can have happened to a spawned sub-agent. Stream `spawn:<id>`, shared words from `exchange.py`."""

from typing import Literal

from intersession_events.exchange import AnnounceDecided, AnnounceRequested, RunStatus
from intersession_events.fact import Fact
from intersession_events.message import Usage
from intersession_events.session import Route

SpawnClose = Literal[
    "no_route",
    "announced",
    "silent",
    "handed_over",
    "announce_failed",
    "announce_denied",
    "delivery_unknown",
    "requester_gone",
    "inferred",
]


class SpawnAccepted(Fact, frozen=True, kw_only=True):
    """A sub-agent was accepted; the child's key is fixed by the run's id (SPAWN-6).

    `route` is the requester's at this moment (SPAWN-9). Times in milliseconds; `run_timeout_ms` 0 is no
    limit and counts from the start of the run, `archive_after_ms` 0 never archives.
    """

    spawn_id: str
    run_id: str
    child: str
    child_session_id: str
    agent_id: str
    task: str
    message_id: str
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
    run_timeout_ms: int = 0
    announce_timeout_ms: int = 60_000
    archive_after_ms: int = 0
    sandboxed: bool = False
    depth: int = 1
    idempotency_key: str | None = None
    request_digest: str | None = None
    inferred: bool = False
    evidence: str | None = None


class ChildEnded(Fact, frozen=True, kw_only=True):
    """The child's task run ended (SPAWN-10). `last_tool_result` stands in for an empty reply."""

    run_id: str
    status: RunStatus
    text: str | None = None
    error: str | None = None
    last_tool_result: str | None = None
    usage: Usage | None = None
    model: str | None = None
    started_ms: int | None = None
    ended_ms: int | None = None


class ResultHanded(Fact, frozen=True, kw_only=True):
    """The result was put to the requester's session as a message, once, and its agent runs on it (SPAWN-9)."""

    requester: str
    run_id: str
    message_id: str


class SpawnClosed(Fact, frozen=True, kw_only=True):
    """The spawn's announce is final, and how."""

    reason: SpawnClose
    note: str | None = None


class ChildArchived(Fact, frozen=True, kw_only=True):
    """The child left the list (SPAWN-11); its record stays in the log."""

    child: str
    reason: Literal["cleanup", "expired"]


SpawnEvent = (
    SpawnAccepted
    | ChildEnded
    | AnnounceRequested
    | AnnounceDecided
    | ResultHanded
    | SpawnClosed
    | ChildArchived
)
