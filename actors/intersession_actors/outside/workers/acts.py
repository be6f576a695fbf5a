"""What an agent can do in a turn that a worker makes: each act is asked of the writer's gateway, by `worker.act` (WORK-6)."""

from collections.abc import Hashable
from typing import Annotated

import msgspec

from intersession_actors.outside.attachments.message_files import AttachmentParams
from intersession_actors.rules.gate.limits import IDENTITY
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Block, ToolCallBlock, ready

_Text = Annotated[str, msgspec.Meta(max_length=IDENTITY.most)]
_Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
_Names = Annotated[list[_Text], msgspec.Meta(max_length=1_000)]


class Act(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", tag_field="type"
):
    """Base of all acts. Each answers an object; the fields of that stand in the docstrings."""


class Repeated(Act, frozen=True, kw_only=True):
    """An act that can be made again in the same words. `time` counts how often this attempt has made it, from 1 on.

    So a writer that took over knows which one of them it is. With 0 the writer counts.
    """

    time: _Count = 0

    @property
    def said(self) -> Hashable:
        """What is the same in each repetition."""
        return msgspec.json.encode(msgspec.structs.replace(self, time=0), order="sorted")


class CallTool(Repeated, frozen=True, kw_only=True, tag="call"):
    """Call a session tool: `result` is its answer."""

    name: str
    args: JsonObject = msgspec.field(default_factory=JsonObject)


class DescribeTools(Act, frozen=True, kw_only=True, tag="tools"):
    """Describe the session's tools: `tools`, in a dialect (`ToolBox.schemas`)."""

    dialect: _Text = "openai"


class AllowTools(Act, frozen=True, kw_only=True, tag="allowed"):
    """Ask which tools of the agent's own it may have: `names` (TOOL-5)."""

    names: _Names


class Say(Repeated, frozen=True, kw_only=True, tag="said"):
    """Record what the model says beside a call."""

    blocks: list[Block]


class RecordCalls(Repeated, frozen=True, kw_only=True, tag="toolCalls"):
    """Record that tools of the agent's own are about to be called. It is the same again where the first one has the same id."""

    calls: Annotated[list[ToolCallBlock], msgspec.Meta(min_length=1)]

    @property
    def said(self) -> Hashable:
        """What is the same in each repetition."""
        return "toolCalls", self.calls[0].id


class RecordResult(Repeated, frozen=True, kw_only=True, tag="toolResult"):
    """Record the result of such a call. It is the same again where it is for a call of the same id."""

    call_id: str
    name: str
    content: str
    is_error: bool = False

    @property
    def said(self) -> Hashable:
        """What is the same in each repetition."""
        return "toolResult", self.call_id


class AskApproval(Repeated, frozen=True, kw_only=True, tag="approval"):
    """Ask whether a recorded call may act, and wait for it: `arguments`, and `refused` and `editedBy` where they are not null (ASK)."""

    call_id: str
    name: str
    arguments: JsonObject
    is_new: bool = False

    @property
    def said(self) -> Hashable:
        """What is the same in each repetition; the id of a call that a model made up is not (`is_new`)."""
        words = msgspec.json.encode([self.name, self.arguments], order="sorted")
        return "approval", "" if self.is_new else self.call_id, words


class HasMessage(Act, frozen=True, kw_only=True, tag="has"):
    """Ask whether the session has a message: `has`."""

    message_id: str


class ShowPiece(Act, frozen=True, kw_only=True, tag="piece"):
    """Show the next piece of the answer. `at`: how many characters were said before it; of what was shown already, nothing is shown again.

    `said` is how many characters are shown now; if they are fewer than `at`, the writer took over, and wants all from there.
    """

    text: str
    at: _Count | None = None


class ReadFile(Act, frozen=True, kw_only=True, tag="file"):
    """Read a file of a message of the session: `content` in base64, from the byte `at` on, and its `size`; at most 2 MiB at a time."""

    sha256: _Sha256
    at: _Count = 0


class PutFiles(Act, frozen=True, kw_only=True, tag="putFile"):
    """Store files of the answer: `files` are the blocks for it (FILE-6)."""

    files: list[AttachmentParams]


class ListAttachments(Act, frozen=True, kw_only=True, tag="attachments"):
    """List the files from the spawn of the session: `attachments`, each `{name, size, sha256, mimeType}` (ATT-6)."""


class ReadAttachment(Act, frozen=True, kw_only=True, tag="attachment"):
    """Read a file from the spawn of the session, as `file` does."""

    name: str
    at: _Count = 0


AnyAct = (
    CallTool
    | DescribeTools
    | AllowTools
    | Say
    | RecordCalls
    | RecordResult
    | AskApproval
    | HasMessage
    | ShowPiece
    | ReadFile
    | PutFiles
    | ListAttachments
    | ReadAttachment
)


@ready
class ActParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """`worker.act`: an act in an attempt that a worker has taken. `secret` is that of its offer.

    `number` is that of the act in its attempt: sent again, after a lost connection or to the writer that took over, it counts once.
    """

    id: _Text
    attempt: _Count
    secret: _Text
    number: _Count
    act: AnyAct
