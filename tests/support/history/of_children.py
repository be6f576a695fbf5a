"""What is announced of a sub-agent: how its run ended, in the runtime's word, and what it said or left behind (SPAWN-9, SPAWN-10)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    ChildArchived,
    ChildEnded,
    Event,
    RunEnd,
    RunStatus,
    SessionOpened,
    SpawnAccepted,
    SpawnClosed,
)
from intersession_events.log.recorded import Recorded
from support.history.evidence import LATE_S, SLACK_S, Evidence, is_word, said

STATUSES: Final[Mapping[RunStatus, str]] = {
    "ok": "success",
    "error": "error",
    "timeout": "timeout",
    "interrupted": "interrupted",
    "aborted": "interrupted",
}


def children_told_as_they_ended(evidence: Evidence) -> Iterator[str]:
    """SPAWN-9, SPAWN-10: a child that skips is silent; of every other its status is told, and its words, its reply or its last tool result."""
    for items in evidence.flows("spawn:"):
        if not isinstance(items[0].event, SpawnAccepted):
            continue
        ended: ChildEnded | None = None
        asked: str | None = None
        for item in items:
            match item.event:
                case ChildEnded():
                    ended = item.event
                case AnnounceRequested(run_id=run_id):
                    asked = run_id
                case AnnounceDecided() as decided if ended is not None:
                    answer = evidence.replies.get(asked or "")
                    words = None if answer is None else said(answer.reply)
                    for wrong in _wrong(ended, words, decided):
                        yield f"#{item.position} {wrong}"
                case _:
                    pass


def children_are_opened_for_their_requester(evidence: Evidence) -> Iterator[str]:
    """SPAWN-6: a child's session says by which spawn, by whom and how deep it was started."""
    for item, spawn in evidence.of(SpawnAccepted):
        for opened in evidence.streams.get(f"session:{spawn.child}", ()):
            event = opened.event
            if isinstance(event, SessionOpened) and event.spawn_id == spawn.spawn_id:
                said_so = (event.spawned_by, event.spawn_depth)
                if said_so != (spawn.requester, spawn.depth):
                    yield f"#{opened.position} is opened for {said_so}, and #{item.position} for {spawn.requester}"


def children_have_their_hour(evidence: Evidence) -> Iterator[str]:
    """SPAWN-11: a child is in the list for as long as its spawn says, from the end of its run on, and no longer."""
    for items in evidence.flows("spawn:"):
        spawn = items[0].event
        if not isinstance(spawn, SpawnAccepted) or not spawn.archive_after_ms or spawn.cleanup == "delete":
            continue
        ended = next((item for item in items if isinstance(item.event, ChildEnded)), None)
        if ended is None or spawn.mode == "session":
            continue
        yield from _out_of_time(evidence, items, ended, spawn.archive_after_ms / 1000)


def _ends(event: Event, spawn: Event) -> bool:
    return isinstance(event, RunEnd) and isinstance(spawn, SpawnAccepted) and event.run_id == spawn.run_id


def _out_of_time(
    evidence: Evidence, items: Sequence[Recorded], ended: Recorded, hour_s: float
) -> Iterator[str]:
    archived = next((item for item in items if isinstance(item.event, ChildArchived)), None)
    if archived is not None:
        expired = isinstance(archived.event, ChildArchived) and archived.event.reason == "expired"
        # The hour begins with the end of the run, of which a spawn may hear late: where the store was away meanwhile.
        # A child that ended without a run's end (deleted, or given up) began no hour.
        begins = next((one for one in evidence.events if _ends(one.event, items[0].event)), None)
        had_s = None if begins is None else evidence.seconds_between(begins, archived)
        if begins is not None and had_s is not None:
            # A spawn that was read back from the log, as after a failed commit, knows the log's time alone.
            had_s = max(had_s, (archived.time - begins.time) / 1000)
        if expired and had_s is not None and had_s < hour_s - SLACK_S:
            yield f"#{archived.position} archives the child of {items[0].stream} after {had_s} s of {hour_s}"
        return
    closed = next((item for item in items if isinstance(item.event, SpawnClosed)), None)
    had_s = None if closed is None else evidence.seconds_since(ended)
    if had_s is not None and closed is not None and closed.epoch == ended.epoch and had_s > hour_s + LATE_S:
        yield f"the child of {items[0].stream} is not archived after {had_s} s of {hour_s}"


def _wrong(ended: ChildEnded, words: str | None, decided: AnnounceDecided) -> Iterator[str]:
    if (decided.text is None) != is_word(words, "ANNOUNCE_SKIP"):
        yield f"announces {decided.text!r}, and the child answered {words!r}"
    if decided.text is None:
        return
    status, result = STATUSES[ended.status], words or ended.text
    if ended.text is None and ended.last_tool_result is not None:
        left = ended.last_tool_result
        result = left if result is None else f"{result}\n\nLatest tool result: {left}"
    if not decided.text.startswith(f"Status: {status}\nResult: {result or '(no output)'}\nNotes: "):
        yield f"announces {decided.text!r} of a child whose run is {status}, with {result!r}"
