"""What can have happened to a session: opened, patched, routed, reset, archived. Stream `session:<key>`."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import msgspec

from intersession_events.facts.base import EMPTY, ERASED, Fact, Source, Whole
from intersession_events.facts.message import Message

__all__ = [
    "ArchiveReason",
    "ChatType",
    "LineImported",
    "MessageRecorded",
    "OpenedBy",
    "Route",
    "RouteChanged",
    "SessionArchived",
    "SessionEvent",
    "SessionImported",
    "SessionOpened",
    "SessionPatched",
    "SessionReset",
    "ThreadBound",
    "ThreadUnbound",
    "UnbindReason",
]

OpenedBy = Literal["person", "operator", "send", "spawn", "import"]
ChatType = Literal["direct", "group", "channel"]
ArchiveReason = Literal["deleted", "cleanup", "expired", "reset"]
UnbindReason = Literal["idle", "max_age", "archived", "unbound"]


class Route(Fact, frozen=True, kw_only=True):
    """Where a session's words go outside: a channel and an address on it."""

    channel: str
    to: str
    account: str | None = None
    thread: str | None = None


class SessionOpened(Fact, frozen=True, kw_only=True):
    """A session began to exist (KEY-9). `key` is canonical; lineage is set by the system alone.

    `spawn_depth` counts the spawns above it: 0 for a session nobody spawned; `spawn_id` is the spawn it came from.
    `by` is who asked for it by a method, where `opened_by` is `operator`.
    """

    topic: ClassVar[str] = "session_opened.1"

    key: str
    session_id: str
    agent_id: str
    opened_by: OpenedBy
    chat_type: ChatType | None = None
    channel: str | None = None
    spawned_by: str | None = None
    spawn_depth: Whole = 0
    sandboxed: bool = False
    label: str | None = None
    display_name: str | None = None
    model: str | None = None
    thinking_level: str | None = None
    verbose_level: str | None = None
    original_key: str | None = None
    spawn_id: str | None = None
    by: str | None = None


class SessionPatched(Fact, frozen=True, kw_only=True):
    """Settings of a session changed (GATE-2, POL-2): the names are those of `sessions.patch`."""

    topic: ClassVar[str] = "session_patched.1"

    values: dict[str, str] = msgspec.field(default_factory=EMPTY)
    cleared: tuple[str, ...] = ()
    by: str | None = None


class RouteChanged(Fact, frozen=True, kw_only=True):
    """A person spoke from here, so the session's words go there (INB-1). Nothing else changes a route."""

    topic: ClassVar[str] = "route_changed.1"

    route: Route
    display_name: str | None = None
    chat_type: ChatType | None = None


class SessionReset(Fact, frozen=True, kw_only=True):
    """A new generation began under the same key; the old transcript stays readable by its id.

    `by` is who wanted it; None in imports.
    """

    topic: ClassVar[str] = "session_reset.1"

    session_id: str
    previous_session_id: str
    reason: str = "reset"
    by: str | None = None


class SessionArchived(Fact, frozen=True, kw_only=True):
    """The session left the list; its history is still readable by `session_id` (HIST-7).

    `by` is who deleted it; None where its time had come, and in imports.
    """

    topic: ClassVar[str] = "session_archived.1"

    session_id: str
    reason: ArchiveReason
    by: str | None = None


class ThreadBound(Fact, frozen=True, kw_only=True):
    """A thread of a channel belongs to this session, both ways (SPAWN-12). Times are milliseconds, 0 is no limit.

    `idle_ms` counts from the last message of the session, `max_age_ms` from the binding.
    """

    topic: ClassVar[str] = "thread_bound.1"

    route: Route
    idle_ms: Whole = 0
    max_age_ms: Whole = 0


class ThreadUnbound(Fact, frozen=True, kw_only=True):
    """The thread belongs to this session no more.

    `by` is who unbound it; None where its time had come, or where its session was archived.
    """

    topic: ClassVar[str] = "thread_unbound.1"

    route: Route
    reason: UnbindReason
    by: str | None = None


class SessionImported(Fact, frozen=True, kw_only=True):
    """What another system had written about this session, as the source text of a JSON object.

    `fields` are those of its entry that have a meaning here; `entry` is the whole entry, verbatim. `model` is the model
    that ran last, for information; `model_override` (`provider/id`, or an id) is what somebody had chosen for the
    session. `other_settings` have the names of `sessions.patch`.
    """

    topic: ClassVar[str] = "session_imported.1"

    session_id: str
    source: str
    entry: Source
    updated_at: Whole
    model: str | None = None
    context_tokens: Whole | None = None
    total_tokens: Whole | None = None
    thinking_level: str | None = None
    verbose_level: str | None = None
    send_policy: Literal["allow", "deny"] | None = None
    label: str | None = None
    display_name: str | None = None
    channel: str | None = None
    last_channel: str | None = None
    last_to: str | None = None
    route: Route | None = None
    spawned_by: str | None = None
    system_sent: bool = False
    aborted_last_run: bool = False
    model_override: str | None = None
    other_settings: dict[str, str] = msgspec.field(default_factory=EMPTY)

    def left_of_sources(self) -> Mapping[str, str | None]:
        """See `Fact.left_of_sources`."""
        return {"entry": "{}"}


class MessageRecorded(Fact, frozen=True, kw_only=True):
    """A message joined the transcript. `session_id` is the generation it belongs to.

    `source` is the verbatim line of an imported transcript. `attempt` is the attempt in which an agent called a tool, or a tool
    gave something, where that was not the first: no attempt before had done it.
    """

    topic: ClassVar[str] = "message_recorded.1"

    session_id: str
    message: Message
    source: Source | None = None
    attempt: Whole | None = None

    def left_of_sources(self) -> Mapping[str, str | None]:
        """See `Fact.left_of_sources`."""
        return {"source": None}


class LineImported(Fact, frozen=True, kw_only=True):
    """A line of an imported transcript that is no message: a header, a model change, a compaction."""

    topic: ClassVar[str] = "line_imported.1"

    session_id: str
    kind: str
    source: Source
    entry_id: str | None = None
    parent_id: str | None = None

    def left_of_sources(self) -> Mapping[str, str | None]:
        """See `Fact.left_of_sources`."""
        # A line of the same kind, at the same place among the others.
        line = {"type": self.kind, "id": self.entry_id, "parentId": self.parent_id, "text": ERASED}
        left = {name: value for name, value in line.items() if value is not None}
        return {"source": msgspec.json.encode(left).decode()}


SessionEvent = (
    SessionOpened
    | SessionPatched
    | RouteChanged
    | SessionReset
    | SessionArchived
    | ThreadBound
    | ThreadUnbound
    | SessionImported
    | MessageRecorded
    | LineImported
)
