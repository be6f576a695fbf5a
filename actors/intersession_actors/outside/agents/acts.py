"""What an agent's turn asks of the log's writer, where the agent is called in another process: the acts of `worker.act` (WORK-12).

The worker of an attempt sends them, and the writer does each on the turn that it made of the same attempt. One that changes something
has a `number`: which repetition it is, from 1 on, among the acts of its attempt with the same type and the same words. So an act that
is sent again, to the same writer or to the next one, is known by its words and its number, and counts once. What derives an id of its
own has a `place` as well: which of all acts of its type in the attempt it is. The id is of that, and tells nothing of the words (ERASE-4).
The first edition had no places (WORK-19).
"""

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from intersession_actors.rules.gate import limits
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Block, FileBlock, ToolCallBlock, ready

Number = Annotated[int, msgspec.Meta(ge=1, le=2**31)]
_Place = Number | None
_At = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
_Names = Annotated[tuple[str, ...], msgspec.Meta(max_length=4096)]


class _Act(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename="camel",
    tag_field="type",
):
    pass


class CallTool(_Act, frozen=True, kw_only=True, tag="call"):
    """Call a session tool. The answer is `{result}`; a refusal of the tool is a result."""

    name: str
    args: Any  # a refusal of the tool says what is wrong with it
    number: Number
    place: _Place = None


class DescribeTools(_Act, frozen=True, kw_only=True, tag="tools"):
    """Describe the session's tools. The answer is `{tools}`."""

    dialect: str


class AllowTools(_Act, frozen=True, kw_only=True, tag="allowed"):
    """Say which of the agent's own tools the session may have (TOOL-5). The answer is `{names}`."""

    names: _Names


class Say(_Act, frozen=True, kw_only=True, tag="said"):
    """Record the model's output beside a tool call. The answer, like that of each act that records, comes once it is durable."""

    blocks: tuple[Block, ...]
    number: Number
    place: _Place = None


class RecordCalls(_Act, frozen=True, kw_only=True, tag="toolCalls"):
    """Record that tools of the agent's own are about to be called side by side; `number` counts by the id of the first."""

    calls: Annotated[tuple[ToolCallBlock, ...], msgspec.Meta(min_length=1, max_length=4096)]
    number: Number


class RecordResult(_Act, frozen=True, kw_only=True, tag="toolResult"):
    """Record the result of a call of such a tool; `number` counts by the call's id."""

    call_id: str
    name: str
    content: str
    is_error: bool = False
    number: Number


class FindMessage(_Act, frozen=True, kw_only=True, tag="has"):
    """Say whether the session has a message with an id. The answer is `{has}`."""

    message_id: str


class AskApproval(_Act, frozen=True, kw_only=True, tag="approval"):
    """Ask whether a recorded call may act (ASK). The answer, an `Approval`, comes once it is released."""

    call_id: str
    name: str
    args: JsonObject
    is_new: bool = False
    number: Number
    place: _Place = None


class ShowPiece(_Act, frozen=True, kw_only=True, tag="piece"):
    """Show the next piece of the answer to listeners (STREAM-1). `number` counts all pieces of the attempt."""

    text: str
    number: Number


class ReadContent(_Act, frozen=True, kw_only=True, tag="file"):
    """Read the content of a file of the session from a byte on (FILE-3). The answer is a `Part`."""

    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    at: _At = 0


class PutContent(_Act, frozen=True, kw_only=True, tag="putFile"):
    """Store a file of the answer (FILE-6); `content` is base64. The answer is `{file}`, its block."""

    content: str
    name: limits.Identity
    mime_type: limits.Identity | None = None


class ListAttachments(_Act, frozen=True, kw_only=True, tag="attachments"):
    """List the files that a spawn handed to the session (ATT-6). The answer is `Attachments`."""


class ReadAttachment(_Act, frozen=True, kw_only=True, tag="attachment"):
    """Read one of these files from a byte on. The answer is a `Part`."""

    name: str
    at: _At = 0


Act: TypeAlias = (
    CallTool
    | DescribeTools
    | AllowTools
    | Say
    | RecordCalls
    | RecordResult
    | FindMessage
    | AskApproval
    | ShowPiece
    | ReadContent
    | PutContent
    | ListAttachments
    | ReadAttachment
)


@ready
class Edition(msgspec.Struct, frozen=True, kw_only=True):
    """The `content` of an agent's offer: the edition of the acts that its writer takes. A worker sends no newer ones (WORK-19)."""

    acts: int = 1


EDITION: Final = msgspec.json.encode(Edition(acts=2))
"""That of this writer: with places."""

READ_ACT: Final = msgspec.json.Decoder(Act)
"""Made here, for threads that read acts at the same time (`ready`)."""


PART: Final = 2 * 1024 * 1024
"""How many bytes of a file one answer has: as base64 they fit a frame."""


@ready
class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of a file as base64, None where its content is not there; `size` is that of the whole file."""

    content: str | None = None
    size: int = 0


class AttachedFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A file that a spawn handed over; it may be there no more."""

    name: str
    size: int
    sha256: str
    mime_type: str | None = None
    is_there: bool = False


@ready
class Attachments(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a spawn handed over, in its order, and the directory in the workspace where they lie."""

    directory: str = ""
    files: tuple[AttachedFile, ...] = ()


@ready
class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `putFile`."""

    file: FileBlock
