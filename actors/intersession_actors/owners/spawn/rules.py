"""The rules of a spawn: task run, announce turn, normalised announce, hand-over, archive (SPAWN-8 to SPAWN-11).

The spawner asks them: state and outcome in, events out. No threads, no clock, no store.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Literal

from msgspec.structs import replace

from intersession_actors.owners.flows import led
from intersession_actors.owners.spawn.announce import SpawnOutcome, announce_text, announce_to_people, stats
from intersession_actors.owners.spawn.commands import (
    ArchiveDue,
    AskStarted,
    ClaimResult,
    FilesRemoved,
    OpenSpawn,
    Prepared,
    SpawnCommand,
)
from intersession_actors.owners.streams.commands import (
    ChildGone,
    DeliveryEnded,
    Refused,
    Resume,
    RunEnded,
    StepRefused,
)
from intersession_actors.owners.streams.strays import foreign
from intersession_actors.owners.streams.texts import Replies
from intersession_actors.rules.policy.chain import check_run
from intersession_actors.rules.prompt.silence import is_announce_skip, visible_text
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.basics.ids import announce_delivery
from intersession_events.log.recorded import Recorded

Phase = Literal["preparing", "task", "announce", "delivery", "closed"]


class Spawn(led.Led, frozen=True, kw_only=True):
    """The state of a spawn."""

    accepted: facts.SpawnAccepted
    phase: Phase = "task"
    ended: facts.ChildEnded | None = None
    archived: bool = False
    closed: facts.SpawnClosed | None = None
    claimed: bool = False
    """Whether the requester waits for the result in its session (CHILD-4)."""
    files_over: bool = False
    """Whether its files were removed, or could not be."""

    @property
    def files_due(self) -> facts.Attachments | None:
        """The files to remove now (ATT-5)."""
        files, accepted = self.accepted.attachments, self.accepted
        if files is None or files.withheld or self.files_over:
            return None
        kept = files.retain and accepted.cleanup == "keep" and not self.not_started
        over = self.closed is not None and not kept
        return files if over or self.archived else None

    @property
    def not_started(self) -> bool:
        """Whether the child's preparation failed, so that it never existed."""
        return self.closed is not None and self.closed.reason == "not_started"

    @property
    def archive_after_ms(self) -> int | None:
        """How long after the end of its run the child is to be archived (SPAWN-11); 0 is at once, None never."""
        accepted = self.accepted
        if self.phase != "closed" or self.archived or accepted.mode == "session" or self.not_started:
            return None
        if accepted.cleanup == "delete":
            return 0
        if not accepted.archive_after_ms or self.ended is None or self.ended.ended_ms is None:
            return None
        return accepted.archive_after_ms


class Circumstances(led.Circumstances, frozen=True, kw_only=True):
    """The facts about the world that a decision needs. `transcript_path` is the child's, if it is mirrored."""

    transcript_path: str | None = None


def evolve(state: Spawn | None, event: facts.SpawnEvent) -> Spawn:  # noqa: C901 - one case an event
    """Apply one recorded event of the spawn's stream."""
    if isinstance(event, facts.SpawnAccepted):
        return Spawn(accepted=event, pending=event.run_id, phase="preparing" if _waits(event) else "task")
    if state is None:
        raise ValueError(f"a spawn can't begin with {type(event).__name__}")
    match event:
        case facts.AttachmentsReady() | facts.ThreadOpened():
            return replace(state, phase="task")
        case facts.SpawnClaimed():
            return replace(state, claimed=True)
        case facts.ChildEnded():
            return replace(state, ended=event, pending="")
        case facts.AnnounceRequested():
            return replace(state, phase="announce", pending=event.run_id)
        case facts.AnnounceDecided():
            return replace(state, phase="delivery", pending=event.delivery_id or "")
        case facts.SpawnClosed():
            return replace(state, phase="closed", pending="", closed=event)
        case facts.ChildArchived():
            return replace(state, archived=True)
        case facts.AttachmentsRemoved() | facts.AttachmentRemovalFailed():
            return replace(state, files_over=True)
        case facts.ResultHanded():
            return state  # the requester has the result; the spawn itself waits for nothing by that


def fold(state: Spawn | None, recorded: Recorded) -> Spawn:
    """Apply one event as it was recorded."""
    if not isinstance(recorded.event, facts.SpawnEvent):
        raise foreign(recorded)
    first, *then = [part for part in facts.parts_of(recorded.event) if isinstance(part, facts.SpawnEvent)]
    return reduce(evolve, then, evolve(state, first))


def decide_open(accepted: facts.SpawnAccepted, budget: facts.Budget) -> facts.SpawnAccepted:
    """Return the beginning of a spawn, with its causal chain's budget. A child that starts at once has its task in its run.

    Its session has what it is given of the requester's transcript.
    """
    if not _waits(accepted):
        accepted = replace(accepted, task=None, given=())
    return facts.lean(replace(accepted, budget=budget))


def _waits(accepted: facts.SpawnAccepted) -> bool:
    """Whether the child starts only when its files or its thread are there."""
    return accepted.attachments is not None or accepted.thread is not None


def decide(state: Spawn, outcome: SpawnCommand, now: Circumstances) -> list[facts.SpawnEvent]:
    """Return the events of the pending run's or delivery's outcome, or of finished work; none for an outdated one."""
    match outcome:
        case Prepared():
            return decide_prepared(state, outcome, now.refused.get(state.accepted.run_id))
        case FilesRemoved():
            return decide_removed(state, outcome.error)
        case ChildGone():
            return decide_gone(state)
        case ClaimResult():
            is_late = state.claimed or state.phase in {"delivery", "closed"}
            return [] if is_late else [facts.SpawnClaimed(run_id=outcome.run_id, by=outcome.by)]
        case ArchiveDue():
            return [] if state.archive_after_ms is None else [decide_archived(state)]
        case RunEnded() if outcome.run_id == state.pending and state.phase == "task":
            return _task_ended(state, outcome, now)
        case RunEnded() if outcome.run_id == state.pending and state.phase == "announce":
            return _announce_ended(state, outcome, now)
        case DeliveryEnded() if outcome.delivery_id == state.pending and state.phase == "delivery":
            return [facts.SpawnClosed(reason=led.ENDS[outcome.outcome], note=outcome.note)]
        case RunEnded() | DeliveryEnded() | OpenSpawn() | AskStarted() | Resume():
            return []


def decide_prepared(state: Spawn, prepared: Prepared, refused: StepRefused | None) -> list[facts.SpawnEvent]:
    """Return the start of a prepared child, or the event that there will be none (SPAWN-12, ATT-3).

    `refused` is what its session's actor said, if it would not open it.
    """
    if state.phase != "preparing":
        return []
    why = prepared.refused
    if why is None and refused is not None:
        why = Refused(code=refused.code, error=refused.error)
    if why is not None:
        return [facts.SpawnClosed(reason="not_started", code=why.code, note=why.error)]
    events: list[facts.SpawnEvent] = []
    if prepared.thread is not None:
        events.append(facts.ThreadOpened(route=prepared.thread, withheld=prepared.thread_withheld))
    files = state.accepted.attachments
    if files is not None and prepared.manifest_sha256 is not None:
        events.append(
            facts.AttachmentsReady(
                directory=files.directory,
                count=len(files.files),
                total_bytes=sum(file.bytes for file in files.files),
                manifest_sha256=prepared.manifest_sha256,
                withheld=prepared.files_withheld,
            )
        )
    return events


def decide_gone(state: Spawn) -> list[facts.SpawnEvent]:
    """Return the event that the child was archived by another command (HIST-7); none if that is known, or there is no child yet."""
    if state.archived or state.phase == "preparing":
        return []
    return [facts.ChildArchived(child=state.accepted.child, reason="deleted")]


def decide_archived(state: Spawn) -> facts.ChildArchived:
    """Return the archiving of a child whose time is over (SPAWN-11)."""
    accepted = state.accepted
    return facts.ChildArchived(
        child=accepted.child, reason="cleanup" if accepted.cleanup == "delete" else "expired"
    )


def decide_removed(state: Spawn, error: str | None) -> list[facts.SpawnEvent]:
    """Return the outcome of removing the files, once (ATT-5)."""
    files = state.files_due
    if files is None:
        return []
    if error is None:
        return [facts.AttachmentsRemoved(directory=files.directory)]
    return [facts.AttachmentRemovalFailed(directory=files.directory, error=error)]


def _task_ended(state: Spawn, outcome: RunEnded, now: Circumstances) -> list[facts.SpawnEvent]:
    has_text = visible_text(outcome.text) is not None
    ended = facts.ChildEnded(
        run_id=outcome.run_id,
        status=outcome.status,
        said="text" if has_text else "nothing",
        in_transcript=outcome.in_transcript,
        error=outcome.error,
        last_tool_result=None if has_text else outcome.last_tool_result,
        usage=outcome.usage,
        model=outcome.model,
        started_ms=outcome.started_ms,
        ended_ms=outcome.ended_ms,
    )
    accepted = state.accepted
    if outcome.by is not None and outcome.by == accepted.requester:
        return [ended, facts.SpawnClosed(reason="cancelled")]
    if 0 < (outcome.ended_ms or 0) <= accepted.awaited_until_ms:
        return [ended, facts.SpawnClosed(reason="returned")]
    after = evolve(state, ended)
    asked = led.announce_requested(now.log_id, state.accepted.spawn_id, state.accepted.child)
    if outcome.status != "ok" or asked.run_id in now.refused:
        # A child that broke is not asked again; what it leaves behind is announced for it.
        return [ended, *_announce(after, None, now, why="child_failed")]
    if check_run(state.budget, now.spent, now.now_ms) is not None:
        # Nor is one whose chain has nothing left for the turn: its result is not lost by that.
        return [ended, *_announce(after, None, now, why="limit")]
    return [ended, asked]


def _announce_ended(state: Spawn, outcome: RunEnded, now: Circumstances) -> list[facts.SpawnEvent]:
    text = visible_text(outcome.text) if outcome.status == "ok" else None
    if text is not None and is_announce_skip(text):
        return [
            facts.AnnounceDecided(
                silent=True, why="announce_skip", run_id=outcome.run_id, usage=outcome.usage
            ),
            facts.SpawnClosed(reason="silent"),
        ]
    run_id = None if text is None else outcome.run_id
    return _announce(state, run_id, now, why="text", usage=outcome.usage)


def _announce(
    state: Spawn,
    run_id: str | None,
    now: Circumstances,
    *,
    why: Literal["text", "child_failed", "limit"],
    usage: facts.Usage | None = None,
) -> list[facts.SpawnEvent]:
    """Announce the normalised outcome to the requester's route, or hand it to its session (SPAWN-9).

    `run_id` is the run that said what to announce. Where the causal chain has no run left for the requester, the result is put to its session all the same (LOOP-5).
    """
    accepted = state.accepted
    for_people = now.has_route and not accepted.announce_details
    tripped = check_run(state.budget, now.spent, now.now_ms)
    limit = tripped.setting if tripped is not None else None
    decided = facts.AnnounceDecided(
        run_id=run_id,
        why=why,
        usage=usage,
        limit=limit if why == "limit" else None,
        stats=stats(outcome_of(state, None, now.transcript_path)) if for_people else None,
    )
    if now.has_route:
        return [replace(decided, delivery_id=announce_delivery(now.log_id, accepted.spawn_id))]
    if accepted.requester is None:
        return [decided, facts.SpawnClosed(reason="no_route")]
    result_id = ids.derive(now.log_id, "run", accepted.spawn_id, "result")
    refusal = now.refused.get(result_id) or now.refused.get("")
    if refusal is not None:
        return [decided, facts.SpawnClosed(reason="requester_gone", note=refusal.error)]
    return [
        decided,
        facts.ResultHanded(
            requester=accepted.requester,
            run_id=result_id,
            message_id=ids.derive(now.log_id, "message", result_id),
            limit=limit,
        ),
        facts.SpawnClosed(
            reason="handed_over",
            note=tripped.words if tripped is not None else None,
            limit=limit,
            used=tripped.value if tripped is not None else None,
        ),
    ]


def announced_text(
    state: Spawn, decided: facts.AnnounceDecided, texts: Replies, transcript_path: str | None
) -> str:
    """Return the child's announced text (SPAWN-10)."""
    outcome = outcome_of(state, _result(state, decided.run_id, texts), transcript_path)
    return announce_text(outcome) if decided.stats is None else announce_to_people(outcome)


def with_text(
    state: Spawn, events: Sequence[facts.Event], texts: Replies, transcript_path: str | None
) -> list[facts.Event]:
    """Return a decision's events, with the text of an announce that goes nowhere: it is stored in no other place."""
    if any(isinstance(event, facts.ResultHanded) for event in events):
        return list(events)
    return [
        replace(event, text=announced_text(state, event, texts, transcript_path))
        if isinstance(event, facts.AnnounceDecided) and not event.silent and event.delivery_id is None
        else event
        for event in events
    ]


def outcome_of(state: Spawn, result: str | None, transcript_path: str | None) -> SpawnOutcome:
    """Return the ended child's outcome (SPAWN-10): the status comes from the runtime, never from the model."""
    ended = state.ended
    if ended is None:
        raise ValueError("a child that has not ended has nothing to announce")
    runtime = None
    if ended.started_ms is not None and ended.ended_ms is not None:
        runtime = max(0, ended.ended_ms - ended.started_ms)
    return SpawnOutcome(
        status=_STATUS[ended.status],
        result=result,
        notes=ended.error,
        runtime_ms=runtime,
        usage=ended.usage,
        session_key=state.accepted.child,
        session_id=state.accepted.child_session_id,
        transcript_path=transcript_path,
    )


def _result(state: Spawn, run_id: str | None, texts: Replies) -> str | None:
    """Return the text of the announce run, else the final reply. With an empty reply the latest tool result is a part of it."""
    said = replied(state, texts) if run_id is None else texts.reply(run_id)
    ended = state.ended
    if ended is None or ended.said == "text" or ended.last_tool_result is None:
        return said
    return (
        ended.last_tool_result if said is None else f"{said}\n\nLatest tool result: {ended.last_tool_result}"
    )


def replied(state: Spawn, texts: Replies) -> str | None:
    """Return the child's reply; None is no text."""
    ended = state.ended
    if ended is None or ended.said == "nothing":
        return None
    return texts.reply(ended.run_id) if ended.text is None else ended.text


def replied_for_child(state: Spawn, texts: Replies) -> str | facts.Quote | None:
    """Return the child's reply for itself, beside a message: its place in the transcript, else the whole text."""
    ended = state.ended
    if ended is None or ended.said == "nothing" or ended.text is not None or not ended.in_transcript:
        return replied(state, texts)
    return facts.Quote(run_id=ended.run_id)


_STATUS: Mapping[facts.RunStatus, Literal["success", "error", "timeout", "interrupted"]] = {
    "ok": "success",
    "error": "error",
    "timeout": "timeout",
    "interrupted": "interrupted",
    "aborted": "interrupted",
}
