"""The transcript that a child begins with: its requester's, as of the spawn (CHILD-6)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_actors.owners.session.folding import session_at
from intersession_actors.rules.errors import UNREADABLE, refused_by
from intersession_events.basics import ids
from intersession_events.facts import Message, Provenance, calls_of
from intersession_events.log.log import ActorsLog

MOST_BYTES: Final = 256 * 1024
"""How much of a transcript goes along, in bytes of JSON: more is left out, the oldest first."""

_ENCODE: Final = msgspec.json.Encoder().encode


class Inheritance(NamedTuple):
    """The messages that a child begins with, the version of the stream that they are of, and how many older ones are left out.

    `summary` is the run that has summarised others.
    """

    messages: tuple[Message, ...] = ()
    version: int = 0
    left_out: int = 0
    summary: str | None = None


NOTHING: Final = Inheritance()


def inheritance_of(log: ActorsLog, key: str, run_id: str, now_ms: int) -> Inheritance:
    """Return what a child begins with whose run is `run_id`; nothing, where nothing was said to its requester `key` yet.

    Where a summary stands for the oldest messages (CTX-5), the child gets that in their place.

    Raises:
        ToolRefused: the requester's stream can't be read.
    """
    try:
        fold = session_at(log, ids.session_stream(key), None).transcript
        transcript, added, summary = fold.so_far()
        first = 0 if summary is None else summary.messages
        messages, left_out = _newest(transcript, _answered(added), first)
    except UNREADABLE as error:
        raise refused_by(error, "context: the transcript of this session can't be read") from error
    if not messages and not left_out and summary is None:
        return NOTHING
    told = f"You begin with what was said in the session {key} until it started you."
    if summary is not None:
        told += f" Of its {first} oldest messages this is left:\n\n{summary.text}"
    if left_out:
        told += f"\n\n{left_out} more messages are left out here."
    begins = Message(
        id=ids.derive(log.log_id, "given", run_id),
        role="user",
        content=told,
        timestamp=now_ms,
        provenance=Provenance(kind="internal_system", source_session_key=key, source_tool="sessions_spawn"),
    )
    return Inheritance(
        (begins, *messages), fold.version, left_out, None if summary is None else summary.run_id
    )


def _answered(added: Sequence[Message]) -> Sequence[Message]:
    """Return what a run has added up to a call that has no result yet: that of `sessions_spawn` itself, or one beside it."""
    results = {one.tool_call_id for one in added}
    open_at = (at for at, one in enumerate(added) if not results.issuperset(calls_of(one)))
    return added[: next(open_at, len(added))]


def _newest(
    transcript: Sequence[Message], added: Sequence[Message], first: int
) -> tuple[Sequence[Message], int]:
    """Return the newest whole turns behind a first message that there is room for, and how many messages are left out.

    A turn that is too long by itself is parted, but no call from its result.
    """
    length, left = len(transcript), MOST_BYTES
    newest: list[Message] = []
    for at in reversed(range(first, length + len(added))):
        one = added[at - length] if at >= length else transcript[at]
        left -= len(_ENCODE(one))
        if left < 0:
            begins = [at for at, one in enumerate(reversed(newest)) if one.role == "user"]
            parted = [at for at, one in enumerate(reversed(newest)) if one.role != "toolResult"]
            newest = newest[: len(newest) - next(iter((*begins, *parted)), len(newest))]
            break
        newest.append(one)
    newest.reverse()
    return newest, length + len(added) - first - len(newest)
