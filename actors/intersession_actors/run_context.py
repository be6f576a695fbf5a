"""What a run's agent sees, folded from the session's stream, and its hash (PROV-4).

Pure: the same stream up to the same version gives the same context, so that it can be rebuilt from the log.
The message that a run answers stands where the run *started*: a message that waited while another run was still
talking is not shown in the middle of that talk.
"""

import hashlib
from collections.abc import Iterable

import msgspec

from intersession_events.message import Message, text_of
from intersession_events.recorded import Recorded
from intersession_events.run import RunQueued, RunStarted
from intersession_events.session import MessageRecorded, SessionOpened, SessionReset


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """The input of one attempt: what was said before, the message, and what earlier attempts did."""

    message: Message
    transcript: tuple[Message, ...]
    partial: tuple[Message, ...]
    system_context: str
    hash: str


def build(recorded: Iterable[Recorded], run_id: str) -> RunContext:
    """Return the context of a run, from its session's stream.

    Raises:
        LookupError: the stream has no such run, or not its message.
    """
    transcript: list[Message] = []
    inputs: dict[str, Message] = {}
    queued: dict[str, RunQueued] = {}
    partial: list[Message] = []
    pending: dict[str, Message] = {}
    awaited: set[str] = set()
    session_id = ""
    for item in recorded:
        match item.event:
            case SessionOpened(session_id=opened):
                transcript, session_id = [], opened
            case SessionReset(session_id=renewed):
                transcript, session_id = [], renewed
            case MessageRecorded(message=message, session_id=of) if of == session_id:
                if message.run_id == run_id and message.role != "user":
                    partial.append(message)
                else:
                    pending[message.id] = message
                    transcript.append(message)
            case RunQueued() as event:
                queued[event.run_id] = event
                message_or_none = pending.pop(event.message_id, None)
                if message_or_none is not None:
                    inputs[event.run_id] = message_or_none
                    awaited.add(event.run_id)
                    transcript.remove(message_or_none)
            case RunStarted(run_id=started) if started in awaited and started != run_id:
                awaited.discard(started)
                transcript.append(inputs[started])
            case _:
                pass
    if run_id not in inputs:
        raise LookupError(f"run {run_id} has no message in this stream")
    message = inputs[run_id]
    context = queued[run_id].system_context
    return RunContext(
        message=message,
        transcript=tuple(transcript),
        partial=tuple(partial),
        system_context=context,
        hash=_hash(context, message, transcript, partial),
    )


def _hash(context: str, message: Message, transcript: list[Message], partial: list[Message]) -> str:
    """SHA-256 of the canonical JSON of all that the agent is given."""
    seen = {"context": context, "message": message, "partial": partial, "transcript": transcript}
    return hashlib.sha256(msgspec.json.encode(seen, order="sorted")).hexdigest()


def final_text(messages: tuple[Message, ...]) -> str | None:
    """Return the visible text of the last assistant message, or None."""
    for message in reversed(messages):
        if message.role == "assistant":
            return text_of(message) or None
    return None
