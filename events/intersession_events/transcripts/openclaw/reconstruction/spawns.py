"""Reconstructs the spawns of a state: call, registry record, child, and the result that came back (IMP-4). Pure."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from intersession_events.transcripts.openclaw.reading.foreign_json import a_count, a_text
from intersession_events.transcripts.openclaw.reading.foreign_json import at as at_path
from intersession_events.transcripts.openclaw.reading.lines import Line
from intersession_events.transcripts.openclaw.reading.state import RunRecord
from intersession_events.transcripts.openclaw.reconstruction.evidence import (
    Completion,
    completion_of,
    task_of,
)
from intersession_events.transcripts.openclaw.reconstruction.exchanges import Stepped
from intersession_events.transcripts.openclaw.reconstruction.sessions import Session
from intersession_events.transcripts.openclaw.reconstruction.steps import HANDED, Call, Step
from intersession_events.transcripts.openclaw.report import Refused, Unattributed

_MIRROR: Final = re.compile(
    r"\S+ Subagent \S.*? (?:finished|timed out|failed)[^\n]*(?:\n\n(?P<body>.*))?", re.DOTALL
)


class Handed(msgspec.Struct, frozen=True, kw_only=True):
    """A completion event: the step it began in the requester's session, and its content."""

    at: Stepped
    told: Completion


class Spawn(msgspec.Struct, kw_only=True):
    """A spawn as far as it is known. `work` is the child's last step that no other session sent."""

    child: Session
    requester: str | None = None
    within: Stepped | None = None
    call: Call | None = None
    record: RunRecord | None = None
    task: Step | None = None
    work: Step | None = None
    handed: list[Handed] = msgspec.field(default_factory=list[Handed])
    mirror: tuple[Line, str] | None = None

    @property
    def said(self) -> str | None:
        """The child's result: from the completion event, else from its own last answer."""
        if self.handed and self.handed[0].told.result is not None:
            return self.handed[0].told.result
        return self.work.said if self.work is not None else None


class FoundSpawns(msgspec.Struct, kw_only=True):
    """The result: spawns by child, refused spawns, and unattributed traces."""

    spawns: list[Spawn] = msgspec.field(default_factory=list[Spawn])
    refused: list[Refused] = msgspec.field(default_factory=list[Refused])
    unattributed: list[Unattributed] = msgspec.field(default_factory=list[Unattributed])


def find_spawns(
    sessions: Mapping[str, Session],
    steps: Mapping[str, Sequence[Stepped]],
    records: Sequence[RunRecord],
    mirrors: Mapping[tuple[str, int], tuple[str, Line, str]],
    mentioned: Callable[[str], str],
) -> FoundSpawns:
    """Join all that is known of each child.

    `steps` are those of each session, `mirrors` the notes of deliveries as (session, line, text) by place; those
    that are found to be a child's result are in its `mirror`.
    """
    return _Finder(sessions, steps, records, mirrors, mentioned).find()


@dataclass
class _Finder:
    sessions: Mapping[str, Session]
    steps: Mapping[str, Sequence[Stepped]]
    records: Sequence[RunRecord]
    mirrors: Mapping[tuple[str, int], tuple[str, Line, str]]
    mentioned: Callable[[str], str]
    found: FoundSpawns = field(default_factory=FoundSpawns)
    spawns: dict[str, Spawn] = field(default_factory=dict[str, Spawn])

    def find(self) -> FoundSpawns:
        for steps in self.steps.values():
            for at in steps:
                for call in at.step.calls:
                    if call.name == "sessions_spawn":
                        self._called(at, call)
        for record in self.records:
            self._recorded(record)
        for key, session in self.sessions.items():
            spawned_by = session.spawned_by
            if session.key.is_subagent or spawned_by is not None:
                spawn = self.spawns.setdefault(key, Spawn(child=session))
                if spawn.requester is None and spawned_by is not None:
                    spawn.requester = self.mentioned(spawned_by)
        for key, spawn in self.spawns.items():
            self._worked(spawn, self.steps.get(key, ()))
        self._told()
        self._mirrored()
        self.found.spawns = [self.spawns[key] for key in sorted(self.spawns)]
        return self.found

    def _called(self, at: Stepped, call: Call) -> None:
        child = a_text(call.details.get("childSessionKey"))
        if call.result is None:
            self._leave("sessions_spawn", call.line, "the transcript has no result of the call")
        elif call.status != "accepted" or child is None:
            self.found.refused.append(call.refusal)
        else:
            spawn = self._of(child)
            if spawn is None:
                self._leave("sessions_spawn", call.line, f"the state has no session {child}")
            elif spawn.call is None:
                spawn.call, spawn.within, spawn.requester = call, at, at.key

    def _recorded(self, record: RunRecord) -> None:
        child = a_text(record.values.get("childSessionKey"))
        spawn = self._of(child) if child is not None else None
        if spawn is None:
            reason = f"the state has no session {child}" if child is not None else "it names no child"
            where = f"subagents/runs.json:{record.run_id}"
            self.found.unattributed.append(Unattributed(what="sub-agent record", where=where, reason=reason))
            return
        # A child that was steered has a second record; the newest has the outcome.
        if spawn.record is None or _created(spawn.record) <= _created(record):
            spawn.record = record
        requester = a_text(record.values.get("requesterSessionKey"))
        if spawn.requester is None and requester is not None:
            spawn.requester = self.mentioned(requester)

    def _of(self, child: str) -> Spawn | None:
        key = self.mentioned(child)
        session = self.sessions.get(key)
        return None if session is None else self.spawns.setdefault(key, Spawn(child=session))

    def _worked(self, spawn: Spawn, steps: Sequence[Stepped]) -> None:
        own = [
            at.step
            for at in steps
            if at.source is None and at.step.unprompted is None and completion_of(at.step.text) is None
        ]
        spawn.task = next((step for step in own if task_of(step.text) is not None), own[0] if own else None)
        spawn.work = own[-1] if own else None

    def _told(self) -> None:
        for steps in self.steps.values():
            for at in steps:
                told = completion_of(at.step.text) or self._told_unseen(at.step.unprompted or "")
                if told is None:
                    continue
                spawn = self.spawns.get(self.mentioned(told.session_key))
                if spawn is None:
                    reason = f"the state has no session {told.session_key}"
                    self._leave("completion event", at.step.message, reason)
                else:
                    spawn.handed.append(Handed(at=at, told=told))
                    # OpenClaw hands a result to who asked for it, and to nobody else.
                    spawn.requester = spawn.requester or at.key
        for spawn in self.spawns.values():
            spawn.handed.sort(key=lambda handed: (handed.at.step.time, handed.at.step.message.place))

    def _told_unseen(self, run_id: str) -> Completion | None:
        """Return what a run was told that a transcript has the answer of alone: which child is done, and its result."""
        if not run_id.startswith(HANDED):
            return None
        child = run_id.removeprefix(HANDED).rpartition(":")[0]
        spawn = self.spawns.get(self.mentioned(child))
        record = spawn.record.values if spawn is not None and spawn.record is not None else {}
        said = spawn.work.said if spawn is not None and spawn.work is not None else None
        return Completion(child, None, a_text(at_path(record, "completion", "resultText")) or said)

    def _mirrored(self) -> None:
        waiting: dict[str, list[Spawn]] = defaultdict(list)
        for spawn in sorted(
            self.spawns.values(), key=lambda spawn: spawn.work.end if spawn.work is not None else 0
        ):
            if not spawn.handed and spawn.requester is not None:
                waiting[spawn.requester].append(spawn)
        for key, line, text in sorted(self.mirrors.values(), key=lambda item: (item[1].time, item[1].place)):
            match = _MIRROR.fullmatch(text)
            if match is None:
                continue
            body = (match["body"] or "").strip()
            for spawn in waiting[key]:
                ended = spawn.work.end if spawn.work is not None else 0
                if (spawn.said or "") == body and ended <= line.time:
                    spawn.mirror = (line, body)
                    waiting[key].remove(spawn)
                    break

    def _leave(self, what: str, line: Line, reason: str) -> None:
        self.found.unattributed.append(Unattributed(what=what, where=str(line), reason=reason))


def _created(record: RunRecord) -> int:
    return a_count(record.values.get("createdAt")) or 0
