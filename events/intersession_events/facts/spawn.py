"""What can have happened to a spawned sub-agent. Stream `spawn:<id>`, shared words from `parts.py`."""

import re
from typing import ClassVar, Final, Literal

import msgspec

from intersession_events.basics.ids import spawn_stream
from intersession_events.facts.base import Fact, Mark, Remark, Root, Said, Whole, Work
from intersession_events.facts.message import Message
from intersession_events.facts.parts import (
    AnnounceDecided,
    AnnounceRequested,
    AttachmentsReady,
    Deciding,
    FlowAccepted,
    FlowAnswered,
    ResultHanded,
    SpawnClosed,
)
from intersession_events.facts.reasons import ARCHIVALS, STATUSES
from intersession_events.facts.session import Route, TranscriptGiven
from intersession_events.facts.words import OF_RUN, Frame, Words

__all__ = [
    "AttachedFile",
    "AttachmentRemovalFailed",
    "Attachments",
    "AttachmentsRemoved",
    "ChildArchived",
    "ChildEnded",
    "SpawnAccepted",
    "SpawnClaimed",
    "SpawnEvent",
    "ThreadAsked",
    "ThreadOpened",
    "without_measures",
]


class AttachedFile(Fact, frozen=True, kw_only=True):
    """A file for a child, without its content, which is in no log and no transcript (ATT-4)."""

    name: str
    bytes: Whole
    sha256: str
    mime_type: str | None = None


class Attachments(Fact, frozen=True, kw_only=True):
    """The files of a child (ATT-5): in `directory` below `root`, its agent's workspace.

    `retain`: the files of a child that is kept outlive its announce, until it is archived. `withheld`: an agent did again
    in a fork what it had done before, and the log lacks the contents of files (ATT-4): they have names only.
    """

    root: str
    directory: str
    files: tuple[AttachedFile, ...]
    retain: bool = False
    withheld: bool = False


class ThreadAsked(Fact, frozen=True, kw_only=True):
    """A request to a channel for a thread (SPAWN-12). `key` is the same on every attempt; times of 0 are no limit."""

    channel: str
    to: str
    title: str
    key: str
    account: str | None = None
    idle_ms: Whole = 0
    max_age_ms: Whole = 0


class SpawnAccepted(FlowAccepted, frozen=True, kw_only=True):
    """A sub-agent was accepted; the child's key is fixed by the run's id (SPAWN-6).

    `task` stands here only until the child starts with what it waits for, and in an import: the run `run_id` has it.
    `route` is the requester's at this moment (SPAWN-9). Times in milliseconds; `run_timeout_ms` 0 is no
    limit and counts from the start of the run, `archive_after_ms` 0 never archives. With `attachments` or a `thread` the child
    starts when those are there; `mount_path` is where it is told its files would be mounted. `budget` is its run's.
    Until `awaited_until_ms` the call itself waits for the result, which is not announced then (CHILD-1).
    Of a child that begins with its requester's transcript, `given_to` is the version of the requester's stream up to which that goes,
    and `given_without` how many older messages do not go along, for which `given_summary` may stand; `given`, the messages, stand here as long as `task` does (CHILD-6).
    `announce_timeout_ms` limits the child's announce turn, `result_timeout_ms` the requester's run on the result. With
    `announce_details` people are shown the stats and the error's text (SPAWN-10).
    """

    topic: ClassVar[str] = "spawn_accepted.1"
    begins: ClassVar[Work | None] = "spawn"

    spawn_id: str
    child: str
    child_session_id: str
    agent_id: str
    task: Said | None = None
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
    attachments: Attachments | None = None
    mount_path: str | None = None
    thread: ThreadAsked | None = None
    awaited_until_ms: Whole = 0
    given: tuple[Message, ...] = ()
    given_to: Whole = 0
    given_without: Whole = 0
    given_summary: str | None = None

    @property
    def transcript(self) -> TranscriptGiven | None:
        """What its child begins with; None if that is nothing, or not at hand here."""
        if self.requester is None or not self.given:
            return None
        return TranscriptGiven(
            session_id=self.child_session_id,
            requester=self.requester,
            requester_session_id=self.requester_session_id,
            version=self.given_to,
            given=self.given,
            left_out=self.given_without,
            summary=self.given_summary,
        )

    @property
    def asked(self) -> str:
        return self.child

    @property
    def asked_text(self) -> str | None:
        return self.task

    @property
    def stream(self) -> str:
        return spawn_stream(self.spawn_id)

    def with_text(self, text: str) -> "SpawnAccepted":
        return msgspec.structs.replace(self, task=text)

    def frame(self) -> Frame:
        return Frame(sides=(self.asker, self.child))

    def in_words(self, at: Frame) -> Words:
        asker, child = at.asker, at.asked
        return Words(
            self.asker, self.child, self.task or OF_RUN, "spawns a sub-agent", self.task, "said",
            step=f"{asker} spawns {child}",
            after=f"after the start: {asker} has spawned {child}, which has not ended its task yet",
        )  # fmt: skip


class ThreadOpened(Deciding, frozen=True, kw_only=True):
    """The channel opened the thread; the child's session is bound to it (SPAWN-12).

    `withheld`: the log is a fork, whose channels are sealed and were not asked. The thread has a name of the fork's own (FORK-5).
    """

    topic: ClassVar[str] = "thread_opened.1"
    mark: ClassVar[Mark | None] = "note"

    route: Route
    withheld: bool = False

    def in_words(self, at: Frame) -> Words:
        if self.withheld:
            channel = self.route.channel
            how = f"would have a thread of its own in {channel}: the channels of a fork are sealed"
            return Words(at.acting, None, f"would open a thread in {channel}", how)
        return Words(
            at.acting, None, f"thread {self.route.text}", f"has a thread of its own: {self.route.text}"
        )


class SpawnClaimed(Fact, frozen=True, kw_only=True):
    """The requester waits for the result in its session: it is handed there, whatever its route is (CHILD-4).

    `run_id` is the requester's run that ended with that.
    """

    topic: ClassVar[str] = "spawn_claimed.1"
    from_outside: ClassVar[bool] = True
    mark: ClassVar[Mark | None] = "note"

    run_id: str
    by: str

    def in_words(self, at: Frame) -> Words:
        return Words(
            self.by, None, f"waits for the result of {at.asked}", "waits for the result",
            step=f"{at.asker} waits for the result of {at.asked}",
        )  # fmt: skip


class AttachmentsRemoved(Fact, frozen=True, kw_only=True):
    """The files, and all else in their directory, are gone (ATT-5)."""

    topic: ClassVar[str] = "attachments_removed.1"

    directory: str

    def in_words(self, at: Frame) -> Words:
        brief, how = f"files removed from {self.directory}", f"has no files any more in {self.directory}"
        return Words(at.acting, None, brief, how)


class AttachmentRemovalFailed(Fact, frozen=True, kw_only=True):
    """The files could not be removed; the removal is not tried again (ATT-5)."""

    topic: ClassVar[str] = "attachment_removal_failed.1"
    mark: ClassVar[Mark | None] = "note"

    directory: str
    error: str

    def in_words(self, at: Frame) -> Words:
        where = f"{self.directory}: {self.error}"
        return Words(at.acting, None, f"files not removed from {where}", f"keeps its files in {where}")


class ChildEnded(FlowAnswered, frozen=True, kw_only=True):
    """The child's task run ended (SPAWN-10).

    `said` is whether it replied with a text. `last_tool_result` stands in for an empty reply.
    """

    topic: ClassVar[str] = "child_ended.1"

    said: Literal["text", "nothing"] = "text"
    last_tool_result: Remark | None = None
    model: str | None = None
    started_ms: Whole | None = None
    ended_ms: Whole | None = None

    def in_words(self, at: Frame) -> Words:
        child, is_ok = at.asked, self.status == "ok"
        ended = f"the task of {child} {STATUSES[self.status]}"
        return self._answer(at.acting, at.other(at.acting), "ends its task")._replace(
            step=f"{child} ends its task" if is_ok else ended,
            after=f"after the task: {f'{child} has done its task' if is_ok else ended}, and nobody has been told yet",
        )


class ChildArchived(Fact, frozen=True, kw_only=True):
    """The child left the list (SPAWN-11); its record stays in the log."""

    topic: ClassVar[str] = "child_archived.1"

    child: str
    reason: Literal["cleanup", "expired", "deleted"]

    @property
    def begun_by(self) -> Root:
        return "timer" if self.reason == "expired" else "operator"

    def in_words(self, at: Frame) -> Words:
        return Words(
            None, self.child, self.reason, f"left the list ({self.reason}); its record stays",
            step=f"{at.asked} leaves the list: {ARCHIVALS[self.reason]}",
            after=f"after the end of {at.asked}: it has left the list, for {ARCHIVALS[self.reason]}",
        )  # fmt: skip


SpawnEvent = (
    SpawnAccepted
    | ThreadOpened
    | AttachmentsReady
    | SpawnClaimed
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

_RUNTIME: Final = re.compile(r"^(Stats: runtime) [^•\n]*", re.MULTILINE)
_TRANSCRIPT: Final = re.compile(r"^(Stats: .*) • transcript [^•\n]*", re.MULTILINE)


def without_measures(text: str) -> str:
    """Return the result of a sub-agent without how long it took and where its transcript lies: what no two logs have in common."""
    return _TRANSCRIPT.sub(r"\1", _RUNTIME.sub(r"\1 <time> ", text))
