"""What can have happened to the log as a whole: opened, configured, checkpointed, forked, imported into, annotated, erased from.

Streams `log`, `clock`, `import:<id>`, `inbound:<id>`, `notes:<run>` and `erased:<stream>`.
"""

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from intersession_events.basics.times import length
from intersession_events.facts.base import Fact, Remark, Root, Whole, ready
from intersession_events.facts.reasons import counted
from intersession_events.facts.run import Step
from intersession_events.facts.words import Frame, Words

__all__ = [
    "CheckpointPublished",
    "CheckpointTaken",
    "ClockStepped",
    "ConfigLoaded",
    "DivergenceKind",
    "EditKind",
    "Erased",
    "ForkEdit",
    "ForkEdited",
    "ForkedFrom",
    "HeadProof",
    "ImportReported",
    "InboundTaken",
    "LogOpened",
    "NotePinned",
    "PublishedTo",
    "RecordingLeft",
    "SourceCheckpoint",
    "SystemEvent",
    "WithheldKind",
]

PublishedTo = Literal["file", "webhook", "command", "witness", "timestamp"]
EditKind = Literal["reply", "message", "skip", "drop", "agent", "set", "inject"]
DivergenceKind = Literal["context", "tool", "missing", "open"]

EDITS: Final[Mapping[EditKind, str]] = {
    "reply": "another answer",
    "message": "another message",
    "skip": "nothing to say",
    "drop": "left out",
}
"""The edits of an answer or a message, each in a few words."""


class LogOpened(Fact, frozen=True, kw_only=True):
    """A writer opened the log; its `epoch` fences off every earlier writer."""

    topic: ClassVar[str] = "log_opened.1"
    origin: ClassVar[Root] = "start"

    epoch: Whole
    version: str

    def in_words(self, at: Frame) -> Words:
        return Words(None, None, f"epoch {self.epoch}, version {self.version}")


class ClockStepped(Fact, frozen=True, kw_only=True):
    """The machine's clock stepped by more than five minutes: it was set, the machine slept, or another machine writes the log (L8).

    `from_ms` is the log's time without the step, `to_ms` its time from here on. If that is earlier, events before it with
    a later time count as if they had that time, wherever a place is named by a time.
    """

    topic: ClassVar[str] = "clock_stepped.1"
    origin: ClassVar[Root] = "system"

    from_ms: Whole
    to_ms: Whole

    def in_words(self, at: Frame) -> Words:
        away = self.to_ms - self.from_ms
        brief = f"the clock stepped {'back' if away < 0 else 'ahead'} by {length(abs(away))}"
        return Words(None, None, brief)


class ConfigLoaded(Fact, frozen=True, kw_only=True):
    """A configuration came into force: its SHA-256 and its text, secrets left out.

    `tools` is the JSON of all tools as they are described to models, by name; None was not recorded.
    """

    topic: ClassVar[str] = "config_loaded.1"
    origin: ClassVar[Root] = "start"

    digest: str
    config: str
    tools: str | None = None

    def in_words(self, at: Frame) -> Words:
        return Words(None, None, f"configuration {self.digest}")


class CheckpointTaken(Fact, frozen=True, kw_only=True):
    """What the log was up to `position`, so that a later change of order, an event taken away or a cut shows (V1).

    All hashes are SHA-256. An event's *line* is `<position> <hash>`, a line feed behind it. `rolling` is over the lines of the
    events since the checkpoint before; `eventsRoot` is the RFC 6962 root of a tree whose leaves are the lines of all `count`
    events up to `position`, `peaks` the roots of its complete subtrees, the largest first. `headsRoot` is the root over the
    last events of all `streams` streams; a writer that is short-lived leaves it out of a log with very many. `previous` is
    the hash of the checkpoint before. `unsaid` is over the lines of what would be left of the same events as `rolling` if their
    words were erased, `<position> <SHA-256 of that payload>` each, of events of kinds with words alone: so nothing else can
    ever stand in the place of an erased one. `signature` is Ed25519, by the key with the id `keyId`; `note` is the line of the
    same key below the checkpoint as a note of C2SP, whose origin is the name in that line (TLOG-1).
    docs/howto/read-the-log.md says how to make each of them again.
    """

    topic: ClassVar[str] = "checkpoint_taken.1"
    origin: ClassVar[Root] = "system"

    position: Whole
    count: Whole
    rolling: str
    events_root: str
    peaks: tuple[str, ...]
    previous: str | None = None
    heads_root: str | None = None
    streams: Whole | None = None
    unsaid: str | None = None
    key_id: str | None = None
    signature: str | None = None
    note: str | None = None

    def in_words(self, at: Frame) -> Words:
        signed = "" if self.key_id is None else f", signed by {self.key_id}"
        return Words(None, None, f"the log up to {self.position}: {self.events_root}{signed}")


class CheckpointPublished(Fact, frozen=True, kw_only=True):
    """The checkpoints up to the one of `position` are published: to a `file`, a `webhook`, a `command`, a `witness` or a `timestamp`.

    `target` is a digest of the place, which may be a secret itself. `receipt` is what the last two answered for this
    checkpoint: the line of a cosignature (TLOG-3), or a response of RFC 3161 over its hash, in base64 (TLOG-6). The
    others have there the cosignatures with which a note was published to them again.
    """

    topic: ClassVar[str] = "checkpoint_published.1"
    origin: ClassVar[Root] = "system"

    position: Whole
    to: PublishedTo
    target: str
    receipt: str | None = None

    def in_words(self, at: Frame) -> Words:
        return Words(None, None, f"the checkpoint of {self.position}, to a {self.to}")


class ImportReported(Fact, frozen=True, kw_only=True):
    """What an import found, and what it left out and why (IMP-1). `report` is the source text of a JSON object."""

    topic: ClassVar[str] = "import_reported.1"
    origin: ClassVar[Root] = "import"

    import_id: str
    source: str
    sessions: Whole
    messages: Whole
    inter_session: Whole
    exchanges: Whole
    spawns: Whole
    skipped: Whole
    report: str

    def in_words(self, at: Frame) -> Words:
        return Words(None, None, f"{self.source}: {self.sessions} sessions, {self.messages} messages")


class InboundTaken(Fact, frozen=True, kw_only=True):
    """A message of a channel that starts no run was recorded in a session, and is never recorded again (INB-1).

    Its stream is named after the run id that the channel's own id stands for, and has no other event: a second copy of
    the message meets it there, however much later. `request_digest` is the SHA-256 of its sender and its place; in
    earlier logs of its text, too.
    """

    topic: ClassVar[str] = "inbound_taken.1"
    origin: ClassVar[Root] = "person"

    session_key: str
    message_id: str
    request_digest: str | None = None

    def in_words(self, at: Frame) -> Words:
        return Words(None, self.session_key, f"message {self.message_id}")


WithheldKind = Literal["words", "secrets"]
"""What an edition of a bundle withholds of an event: all its words, or secrets in them."""


class Erased(Fact, frozen=True, kw_only=True):
    """The words of events of a stream were erased (ERASE-1), in the transaction of this event. Only such an event authorises it.

    `rows` has for each event its version in the stream and the SHA-256, in hex, of its payload since then: the same with
    `[erased]` for its words (`unsaid`). The event has a stream of its own, `erased:<stream>`. `by` is the caller.
    `files` is the number of contents of files that nobody else names, and that are removed behind it (FILE-7); `contents` are
    those, by their SHA-256, that go by their age while the events that name them stay (FORGET-4). `rule` is what
    it was for, where no session was named: `person` (FORGET-1), or a rule of retention such as `messages 400d` (FORGET-4).
    With `thinking` the model's thinking in them went alone (FORGET-6): what is left of each is as it was hashed, and `rows` has that digest.
    The events of one call name its first as their cause, which has in `not_reached` what the call did not reach, in words.
    With an `edition` nothing was erased: the log of a redacted bundle, a fork, leaves out words of its beginning, or masks
    `secrets` in them, which its issuer alone vouches for (BUNDLE-20).
    """

    topic: ClassVar[str] = "erased.1"

    stream: str
    rows: tuple[tuple[Whole, str], ...]
    by: str
    reason: str = ""
    files: Whole = 0
    rule: str = ""
    not_reached: tuple[str, ...] = ()
    edition: WithheldKind | None = None
    contents: tuple[str, ...] = ()
    thinking: bool = False

    def in_words(self, at: Frame) -> Words:
        files = f" with {counted(self.files, 'file')}" if self.files else ""
        rule = f" by the rule {self.rule}" if self.rule else ""
        thinking = "the thinking in " if self.thinking else ""
        brief = f"{thinking}{len(self.rows)} events of {self.stream}{files}{rule}"
        return Words(self.by, None, f"{brief}: {self.reason}" if self.reason else brief)


class NotePinned(Fact, frozen=True, kw_only=True):
    """A reader of a run wrote a note beside it, at the place behind the event at `position`.

    Its stream is named after the exchange, the spawn or the run, `notes:<id>`, which `flow` is. `by` is the author.
    """

    topic: ClassVar[str] = "note_pinned.1"

    flow: str
    position: Whole
    text: Remark
    by: str

    def in_words(self, at: Frame) -> Words:
        return Words(self.by, None, f"notes at {self.position}: {self.text}", text=self.text)


@ready
class ForkEdit(Fact, frozen=True, kw_only=True):
    """An edit for a fork (FORK-4).

    `place` is the place as it was typed. `key` is the thing that is changed, where there are several: an agent's id, a
    setting, a session. `value` is its new value: a text, an agent's SPEC, a setting's value as JSON.
    """

    kind: EditKind
    place: str = ""
    key: str = ""
    value: str = ""


class SourceCheckpoint(Fact, frozen=True, kw_only=True):
    """A checkpoint of the log that a fork was made of, as it was hashed and signed there (`CheckpointTaken`)."""

    position: Whole
    count: Whole
    rolling: str
    events_root: str
    previous: str | None = None
    heads_root: str | None = None
    streams: Whole | None = None
    unsaid: str | None = None
    key_id: str | None = None
    signature: str | None = None


class HeadProof(Fact, frozen=True, kw_only=True):
    """That an event is part of the log that a fork was made of.

    `head` and `checkpoint` say which of `heads` and of `checkpoints`, from 0. `index` is the event's leaf in the tree over
    all events, `path` the way from it to `eventsRoot`, as RFC 6962 has it.
    """

    head: Whole
    checkpoint: Whole
    index: Whole
    path: tuple[str, ...]


class ForkedFrom(Fact, frozen=True, kw_only=True):
    """The log began as a part of another one, `log_id`, as that stood at `position`: its first own event (FORK-2).

    All events up to that position are the other log's, with their positions, hashes and salts; they are hashed under its id.
    `heads` has the last event of each of their streams: its name, version and hash. Of the stream `log` single events
    were taken, and it has each of them. `flow` is the run, exchange or spawn that goes on here, `edits` what was changed, `by`
    who wanted it. `proofs` show by the other log's own `checkpoints` that heads are part of it.
    """

    topic: ClassVar[str] = "forked_from.1"

    log_id: str
    position: Whole
    flow: str
    heads: tuple[tuple[str, Whole, str], ...]
    edits: tuple[ForkEdit, ...] = ()
    by: str = "operator"
    checkpoints: tuple[SourceCheckpoint, ...] = ()
    proofs: tuple[HeadProof, ...] = ()

    def in_words(self, at: Frame) -> Words:
        edits = ", ".join(f"{edit.kind} {edit.key}".strip() for edit in self.edits) or "no edits"
        return Words(self.by, None, f"fork of {self.log_id} at position {self.position}: {edits}")


class ForkEdited(Fact, frozen=True, kw_only=True):
    """An edit of a fork takes effect here (FORK-4); `by` is the caller. Its consequences name it as their cause.

    `replaces` is the position, in the log that was forked, of the event that it takes the place of; None for an edit that
    adds. `run_id` is the run of the message or answer.
    """

    topic: ClassVar[str] = "fork_edited.1"

    edit: ForkEdit
    by: str = "operator"
    replaces: Whole | None = None
    run_id: str | None = None

    def in_words(self, at: Frame) -> Words:
        edit = self.edit
        what = f"{edit.kind} {edit.key}".strip()
        return Words(self.by, None, f"edited at {edit.place}: {what}", text=edit.value or None)


class RecordingLeft(Fact, frozen=True, kw_only=True):
    """A fork left its recording: attempt `attempt` of the run `run_id`, at this `step` and `turn`, has no recorded answer (FORK-7).

    `context`: its agent was given something else than then, `recorded` is what it answered then and `now` what it is asked now.
    `tool`: a tool gave something else (`recorded`, `now`). `missing`: nothing was recorded in this place. `open`: the attempt was
    recorded, and its end was not. `differs` names the parts that differ, with an excerpt of each as it was then (`differs_then`)
    and as it is now (`differs_now`), empty where there was, or is, no such part. All texts are cut, and without secrets.
    `goes_on`: somebody else answers in the place of the recording; else the fork stands still there.
    """

    topic: ClassVar[str] = "recording_left.1"

    session_key: str
    run_id: str
    step: Step
    turn: Whole | None
    attempt: Whole
    kind: DivergenceKind
    recorded: Remark | None = None
    now: Remark | None = None
    differs: tuple[str, ...] = ()
    differs_then: tuple[Remark, ...] = ()
    differs_now: tuple[Remark, ...] = ()
    goes_on: bool = False

    def in_words(self, at: Frame) -> Words:
        what = ", ".join(self.differs) or self.kind
        return Words(self.session_key, None, f"left the recording: {what}", text=self.now)


SystemEvent = (
    LogOpened
    | ClockStepped
    | ConfigLoaded
    | CheckpointTaken
    | CheckpointPublished
    | ImportReported
    | InboundTaken
    | NotePinned
    | Erased
    | ForkedFrom
    | ForkEdited
    | RecordingLeft
)
