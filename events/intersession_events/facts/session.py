"""What can have happened to a session: opened, patched, routed, reset, archived. Stream `session:<key>`."""

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

import msgspec

from intersession_events.basics.times import moment
from intersession_events.facts.base import (
    EMPTY,
    ERASED,
    ERASED_OBJECT,
    Fact,
    Mark,
    Remark,
    Root,
    Source,
    Whole,
)
from intersession_events.facts.message import Message
from intersession_events.facts.message_words import brief_of_message, step_of_message, writer_of
from intersession_events.facts.reasons import ARCHIVALS, OPENINGS, ArchiveReason, OpenedBy, by
from intersession_events.facts.words import Frame, Words

__all__ = [
    "CallRelease",
    "ChatType",
    "LineImported",
    "MessageRecorded",
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
    "ToolCallHeld",
    "ToolCallReleased",
    "TranscriptGiven",
    "UnbindReason",
]

ChatType = Literal["direct", "group", "channel"]
UnbindReason = Literal["idle", "max_age", "archived", "unbound"]


class Route(Fact, frozen=True, kw_only=True):
    """The destination of a session's texts: a channel and an address on it."""

    channel: str
    to: str
    account: str | None = None
    thread: str | None = None

    @property
    def text(self) -> str:
        """It as one word."""
        account = "" if self.account is None else f"{self.account}@"
        thread = "" if self.thread is None else f"#{self.thread}"
        return f"{account}{self.channel}:{self.to}{thread}"


class SessionOpened(Fact, frozen=True, kw_only=True):
    """A session began to exist (KEY-9). `key` is canonical; the system alone sets the lineage.

    `spawn_depth` counts the spawns above it: 0 for a session that was not spawned; `spawn_id` is the spawn that opened
    it. `by` is the caller of the method that opened it, where `opened_by` is `operator`.
    """

    topic: ClassVar[str] = "session_opened.1"
    from_outside: ClassVar[bool] = True

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

    @property
    def begun_by(self) -> Root:
        match self.opened_by:
            case "person":
                return "person"
            case "import":
                return "import"
            case _:
                return "operator"

    def in_words(self, at: Frame) -> Words:
        why = OPENINGS[self.opened_by] if self.by is None else f"{self.by} asks for it"
        brief = f"opened by {self.by or self.opened_by}"
        return Words(self.spawned_by or self.by, at.key, brief, f"The session opens: {why}.")


class SessionPatched(Fact, frozen=True, kw_only=True):
    """Settings of a session changed (GATE-2, POL-2): the names are those of `sessions.patch`."""

    topic: ClassVar[str] = "session_patched.1"
    from_outside: ClassVar[bool] = True
    mark: ClassVar[Mark | None] = "note"

    values: dict[str, str] = msgspec.field(default_factory=EMPTY)
    cleared: tuple[str, ...] = ()
    by: str | None = None

    def in_words(self, at: Frame) -> Words:
        cleared = [f"{name} cleared" for name in self.cleared]
        brief = ", ".join([*(f"{name}={value}" for name, value in self.values.items()), *cleared])
        changes = ", ".join([*(f"{name}: {value}" for name, value in self.values.items()), *cleared])
        return Words(self.by, at.key, brief, f"Settings changed{by(self.by)}: {changes}.")


class RouteChanged(Fact, frozen=True, kw_only=True):
    """A person spoke from here, so the session's texts go there (INB-1). Only persons change a route."""

    topic: ClassVar[str] = "route_changed.1"
    from_outside: ClassVar[bool] = True
    origin: ClassVar[Root] = "person"

    route: Route
    display_name: str | None = None
    chat_type: ChatType | None = None

    def in_words(self, at: Frame) -> Words:
        place = self.route.text
        return Words(None, at.key, f"words go to {place}", f"From now on its words go to {place}.")


class SessionReset(Fact, frozen=True, kw_only=True):
    """A new generation began under the same key; the old transcript can still be read by its id.

    `reason` is `daily`, `idle`, an owner's command such as `/new`, or what the caller of `sessions.reset` said. `by` is the
    caller or the owner; None where its time had come, and in imports. `due_ms` is then since when it was over (RESET-2).
    """

    topic: ClassVar[str] = "session_reset.1"
    from_outside: ClassVar[bool] = True
    mark: ClassVar[Mark | None] = "note"

    session_id: str
    previous_session_id: str
    reason: str = "reset"
    by: str | None = None
    due_ms: Whole | None = None

    @property
    def begun_by(self) -> Root:
        return self.origin if self.due_ms is None else "timer"

    def in_words(self, at: Frame) -> Words:
        brief = f"{self.reason}: {self.previous_session_id} is now {self.session_id}"
        due = "" if self.due_ms is None else f", {self.reason}, due since {moment(self.due_ms)}"
        how = f"The session is reset{by(self.by)}{due}; what was said before is {self.previous_session_id}."
        return Words(self.by, at.key, brief, how)


class SessionArchived(Fact, frozen=True, kw_only=True):
    """The session left the list; its history can still be read by `session_id` (HIST-7).

    `by` is the caller who deleted it; None where its time had come, and in imports.
    """

    topic: ClassVar[str] = "session_archived.1"
    from_outside: ClassVar[bool] = True
    mark: ClassVar[Mark | None] = "note"

    session_id: str
    reason: ArchiveReason
    by: str | None = None

    @property
    def begun_by(self) -> Root:
        match self.reason:
            case "expired":
                return "timer"
            case "cleanup":
                return "system"
            case _:
                return "operator"

    def in_words(self, at: Frame) -> Words:
        how = f"The session leaves the list: {ARCHIVALS[self.reason]}{by(self.by)}."
        return Words(self.by, at.key, f"{self.reason}{by(self.by)}", how)


class TranscriptGiven(Fact, frozen=True, kw_only=True):
    """A child began with the transcript of its requester, as of a `version` of that session's stream (CHILD-6).

    `given` are the messages as they stand there, behind one of the system that says where they are from; `left_out` older ones did
    not go along; `summary` is the run whose text stands for some of these (CTX-5). `session_id` is the child's generation, `requester_session_id` that of the requester.
    """

    topic: ClassVar[str] = "transcript_given.1"
    mark: ClassVar[Mark | None] = "note"

    session_id: str
    requester: str
    version: Whole
    given: tuple[Message, ...]
    left_out: Whole = 0
    summary: str | None = None
    requester_session_id: str | None = None

    def in_words(self, at: Frame) -> Words:
        count = f"{len(self.given) - 1} messages of {self.requester}"
        left_out = f", {self.left_out} older ones left out" if self.left_out else ""
        return Words(
            self.requester,
            at.key,
            f"{count}{left_out}",
            f"begins with {count}, up to its event {self.version}{left_out}",
        )


class ThreadBound(Fact, frozen=True, kw_only=True):
    """A thread of a channel belongs to this session, in both directions (SPAWN-12). Times in milliseconds; 0 is no limit.

    `idle_ms` counts from the last message of the session, `max_age_ms` from the binding.
    """

    topic: ClassVar[str] = "thread_bound.1"
    from_outside: ClassVar[bool] = True

    route: Route
    idle_ms: Whole = 0
    max_age_ms: Whole = 0

    def in_words(self, at: Frame) -> Words:
        return Words(None, at.key, f"thread {self.route.text} is its own")


class ThreadUnbound(Fact, frozen=True, kw_only=True):
    """The thread no longer belongs to this session.

    `by` is the caller who unbound it; None where its time had come, or where its session was archived.
    """

    topic: ClassVar[str] = "thread_unbound.1"
    from_outside: ClassVar[bool] = True

    route: Route
    reason: UnbindReason
    by: str | None = None

    @property
    def begun_by(self) -> Root:
        return "timer" if self.reason in {"idle", "max_age"} else "operator"

    def in_words(self, at: Frame) -> Words:
        brief = f"thread {self.route.text} is its own no more: {self.reason}{by(self.by)}"
        return Words(self.by, at.key, brief)


class SessionImported(Fact, frozen=True, kw_only=True):
    """The entry that another system had of this session, as the source text of a JSON object.

    `fields` are those of its entry that have a meaning here; `entry` is the whole entry, verbatim. `model` is the model
    that ran last, for information; `model_override` (`provider/id`, or an id) is the one chosen for the session.
    `other_settings` have the names of `sessions.patch`.
    """

    topic: ClassVar[str] = "session_imported.1"
    origin: ClassVar[Root] = "import"

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
        return {"entry": "{}"}

    def in_words(self, at: Frame) -> Words:
        return Words(None, at.key, self.source, f"Imported from {self.source}.")


class MessageRecorded(Fact, frozen=True, kw_only=True):
    """A message joined the transcript. `session_id` is the generation it belongs to.

    `source` is the verbatim line of an imported transcript. `attempt` is the attempt in which an agent called a tool, or
    a tool answered, where the attempts before had not done so.
    """

    topic: ClassVar[str] = "message_recorded.1"

    session_id: str
    message: Message
    source: Source | None = None
    attempt: Whole | None = None

    def left_of_sources(self) -> Mapping[str, str | None]:
        return {"source": None}

    @property
    def doer(self) -> str | None:
        return writer_of(self.message)

    def in_words(self, at: Frame) -> Words:
        anew = "" if self.attempt is None else f", new in attempt {self.attempt}"
        step = step_of_message(self.message, at) + anew + (f", for {at.task}" if at.task else "")
        return brief_of_message(self.message, at.key)._replace(step=step)


class LineImported(Fact, frozen=True, kw_only=True):
    """A line of an imported transcript that holds no message: a header, a model change, a compaction; a graph's interrupt."""

    topic: ClassVar[str] = "line_imported.1"
    origin: ClassVar[Root] = "import"

    session_id: str
    kind: str
    source: Source
    entry_id: str | None = None
    parent_id: str | None = None

    def left_of_sources(self) -> Mapping[str, str | None]:
        # A line of the same kind, at the same place among the others.
        line = {"type": self.kind, "id": self.entry_id, "parentId": self.parent_id, "text": ERASED}
        left = {name: value for name, value in line.items() if value is not None}
        return {"source": msgspec.json.encode(left).decode()}

    def in_words(self, at: Frame) -> Words:
        how = _OF_GRAPHS.get(self.kind)
        value = None if how is None else _value_in(self.source)
        if how is None or value is None:
            return Words(None, at.key, self.kind)
        return Words(None, at.key, f"{self.kind}: {value}", how, value)


_OF_GRAPHS: Final[Mapping[str, str]] = {
    "interrupt": "The graph stops, and asks a person:",
    "resume": "A person answers the graph:",
    "error": "A task of the graph fails:",
}
"""Lines of imported graphs that say something to people or of them (IN-2)."""


def _value_in(source: str) -> str | None:
    try:
        value = msgspec.json.decode(source, type=dict[str, msgspec.Raw]).get("value")
    except (ValueError, RecursionError):
        return None
    return None if value is None else bytes(value).decode()


CallRelease = Literal["go_on", "edit", "refuse", "expired", "ended"]
"""How a held call went on. `expired`: nobody said anything in time; `ended`: its run was over before."""

_SAYS: Final[Mapping[CallRelease, str]] = {
    "go_on": "lets the call go on",
    "edit": "lets the call go on with other arguments",
    "refuse": "refuses the call",
    "expired": "nobody released the call in time",
    "ended": "the call's run is over, nobody waits for a release",
}


class ToolCallHeld(Fact, frozen=True, kw_only=True):
    """A tool call waits for a release before it acts (ASK-1).

    A later attempt that makes the same call waits for the same hold. `call_id` names the call in the transcript; `is_new`: a
    model made that up, and gives the same call another one in a later attempt. `rule` is the setting with the pattern that holds it. After
    `timeout_ms` without a release it is refused; 0 is never.
    """

    topic: ClassVar[str] = "tool_call_held.1"
    mark: ClassVar[Mark | None] = "note"

    run_id: str
    hold_id: str
    call_id: str
    tool: str
    arguments: Source
    rule: str
    attempt: Whole = 1
    is_new: bool = False
    timeout_ms: Whole = 0

    def left_of_sources(self) -> Mapping[str, str | None]:
        return {"arguments": ERASED_OBJECT}

    def in_words(self, at: Frame) -> Words:
        return Words(
            at.key, None, f"{self.tool} {self.arguments} waits for a release ({self.rule})",
            f"wants to call {self.tool}; the call waits for a release, as {self.rule} says", self.arguments, "tool",
            step=f"{at.agent}'s call of {self.tool} is held",
            after=f"held: {at.agent}'s call of {self.tool} waits for a release",
        )  # fmt: skip


class ToolCallReleased(Fact, frozen=True, kw_only=True):
    """A held tool call goes on as it is, or with other `arguments`, or is refused with `text` for the model (ASK-2).

    `by` is the caller who released it; None where its time, or its run, was over.
    """

    topic: ClassVar[str] = "tool_call_released.1"
    from_outside: ClassVar[bool] = True
    mark: ClassVar[Mark | None] = "note"

    run_id: str
    hold_id: str
    tool: str
    action: CallRelease
    attempt: Whole = 1
    by: str | None = None
    arguments: Source | None = None
    text: Remark | None = None

    @property
    def begun_by(self) -> Root:
        return "timer" if self.action == "expired" else "operator"

    def left_of_sources(self) -> Mapping[str, str | None]:
        return {"arguments": None if self.arguments is None else ERASED_OBJECT}

    def in_words(self, at: Frame) -> Words:
        says, more = _SAYS[self.action], self.arguments or self.text
        brief = f"{self.tool}: {self.action}" + ("" if more is None else f": {more}")
        how = f"{says} of {self.tool}" if self.by is not None else f"{self.tool}: {says}."
        return Words(
            self.by, at.key, brief, how, more,
            step=f"a release of {self.tool} ({self.action})",
            after=f"after the release of {self.tool}: {self.by or 'time'} {says}",
        )  # fmt: skip


SessionEvent = (
    SessionOpened
    | SessionPatched
    | RouteChanged
    | SessionReset
    | SessionArchived
    | ThreadBound
    | ThreadUnbound
    | TranscriptGiven
    | SessionImported
    | MessageRecorded
    | LineImported
)
