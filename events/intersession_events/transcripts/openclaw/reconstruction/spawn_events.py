"""Makes the events of a reconstructed spawn's stream, marked as inferred, with the evidence for each (IMP-4). Pure."""

from typing import Final, Literal

import msgspec

from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.basics.plain_json import JsonObject
from intersession_events.transcripts.openclaw.reading.foreign_json import a_count, a_text, at
from intersession_events.transcripts.openclaw.reading.lines import evidence_of
from intersession_events.transcripts.openclaw.reconstruction.drafts import Place, Planned, StreamPlan, beside
from intersession_events.transcripts.openclaw.reconstruction.evidence import task_of
from intersession_events.transcripts.openclaw.reconstruction.exchange_events import (
    ANNOUNCE_SKIP,
    Chain,
    World,
)
from intersession_events.transcripts.openclaw.reconstruction.spawns import Spawn

_STATUS: Final[dict[str, facts.RunStatus]] = {
    "ok": "ok",
    "error": "error",
    "timeout": "timeout",
    "unknown": "interrupted",
}
_SECOND_MS: Final = 1000
UNKNOWN: Final = "unknown"
"""Who asked for a child of which nothing in the state says who did."""


def is_cleaned_up(spawn: Spawn) -> bool:
    """Whether the child was to be deleted once its result was announced."""
    return "delete" in {at(_arguments(spawn), "cleanup"), at(_record(spawn), "cleanup")}


def spawn_facts(spawn: Spawn, world: World, chains: dict[tuple[str, int], Chain]) -> list[Planned]:
    """Return the events of a spawn's stream."""
    return _Facts(spawn, world, chains).all()


class _Facts:
    def __init__(self, spawn: Spawn, world: World, chains: dict[tuple[str, int], Chain]) -> None:
        self._spawn = spawn
        self._world = world
        self._child = str(spawn.child.key)
        self._id = ids.derive(
            world.log_id, "import", "spawn", self._child, spawn.child.generations[0].session_id
        )
        self._plan = StreamPlan(world.log_id, ids.spawn_stream(self._id))
        told = a_text(spawn.call.details.get("runId")) if spawn.call is not None else None
        recorded = spawn.record.run_id if spawn.record is not None else None
        self._run_id = told or recorded or ids.derive(world.log_id, "import", self._id, "run")
        self._chain = chains.get(spawn.within.step.message.place) if spawn.within is not None else None
        self._closed: tuple[facts.SpawnClose, str | None] = (
            "inferred",
            "nothing in the state shows what became of it",
        )

    def all(self) -> list[Planned]:
        self._accepted()
        self._ended()
        self._announced()
        self._add(
            facts.SpawnClosed(reason=self._closed[0], note=self._closed[1]), self._plan.planned[-1].place
        )
        self._archived()
        return self._plan.planned

    def _accepted(self) -> None:
        spawn, record, arguments = self._spawn, _record(self._spawn), _arguments(self._spawn)
        task = spawn.task
        words = (
            a_text(arguments.get("task"))
            or a_text(record.get("task"))
            or (task_of(task.text) if task else None)
        )
        seconds = a_count(record.get("runTimeoutSeconds")) or a_count(arguments.get("runTimeoutSeconds")) or 0
        entry = spawn.child.entry.values if spawn.child.entry is not None else {}
        message = task.message.message if task is not None else None
        self._add(
            facts.SpawnAccepted(
                spawn_id=self._id,
                run_id=self._run_id,
                child=self._child,
                child_session_id=spawn.child.generations[0].session_id,
                agent_id=spawn.child.key.agent_id,
                task=words or "",
                # A child whose file was never written has no message; the id then names none.
                message_id=message.id
                if message is not None
                else ids.derive(self._world.log_id, "import", self._id, "task"),
                caller=spawn.requester or UNKNOWN,
                requester=spawn.requester,
                requester_session_id=spawn.within.session_id if spawn.within is not None else None,
                requester_run_id=self._chain.run_id if self._chain is not None else None,
                requester_channel=a_text(at(record, "requesterOrigin", "channel")),
                label=a_text(arguments.get("label"))
                or a_text(record.get("label"))
                or a_text(entry.get("label")),
                model=a_text(arguments.get("model")) or a_text(record.get("model")),
                thinking=a_text(arguments.get("thinking")),
                mode="session" if "session" in {arguments.get("mode"), record.get("spawnMode")} else "run",
                cleanup="delete" if is_cleaned_up(spawn) else "keep",
                run_timeout_ms=seconds * _SECOND_MS,
                # Archiving was the source's business: 0 keeps this side from doing it once more.
                archive_after_ms=0,
                depth=spawn.child.spawn_depth or 1,
                inferred=True,
                evidence=self._evidence(),
            ),
            self._accepted_at(),
            causation=self._world.links.id_of(spawn.call.line) if spawn.call is not None else None,
        )

    def _accepted_at(self) -> Place:
        spawn = self._spawn
        created = a_count(_record(spawn).get("createdAt"))
        if spawn.call is not None and spawn.call.result is not None:
            result = spawn.call.result
            return beside(result, time=min(created, result.time) if created is not None else None)
        start = spawn.child.generations[0]
        return Place(created if created is not None else start.start, start.place, 0, 1)

    def _ended(self) -> None:
        spawn, record, work = self._spawn, _record(self._spawn), self._spawn.work
        ended_ms = a_count(record.get("endedAt"))
        if ended_ms is None and work is not None and work.reply is not None:
            ended_ms = work.end
        outcome = a_text(at(record, "outcome", "status"))
        status = _STATUS.get(outcome) if outcome is not None else None
        if status is None:
            status = work.status if work is not None else "interrupted"
        if "killed" in (a_text(record.get("endedReason")) or ""):
            status = "aborted"
        where = beside(work.reply or work.message) if work is not None else self._plan.planned[-1].place
        started = a_count(record.get("startedAt"))
        self._add(
            facts.ChildEnded(
                run_id=self._run_id,
                status=status,
                said="text" if work is not None and work.said is not None else "nothing",
                text=work.said if work is not None else None,
                error=a_text(at(record, "outcome", "error")) or (work.error if work is not None else None),
                last_tool_result=work.last_tool_result if work is not None and work.said is None else None,
                usage=work.usage if work is not None else None,
                model=work.model if work is not None else None,
                started_ms=started
                if started is not None
                else (spawn.task.time if spawn.task is not None else None),
                ended_ms=ended_ms,
            ),
            where if ended_ms is None else where._replace(time=max(ended_ms, where.time)),
            causation=self._world.links.id_of(work.reply) if work is not None else None,
        )

    def _announced(self) -> None:
        spawn = self._spawn
        if spawn.handed:
            handed = spawn.handed[0]
            message = handed.at.step.message
            why: Literal["text", "no_text"] = "text" if handed.told.result is not None else "no_text"
            result = handed.told.result
            self._add(facts.AnnounceDecided(text=result, silent=result is None, why=why), beside(message))
            self._add(
                facts.ResultHanded(
                    requester=handed.at.key,
                    run_id=ids.derive(self._world.log_id, "import", self._id, "result"),
                    message_id=message.message.id if message.message is not None else "",
                ),
                beside(message),
                causation=self._world.links.id_of(message),
            )
            self._closed = ("handed_over", None)
        elif spawn.mirror is not None:
            line, text = spawn.mirror
            self._add(
                facts.AnnounceDecided(text=text or None, silent=not text),
                beside(line),
                causation=self._world.links.id_of(line),
            )
            self._closed = ("announced", f"noted as delivered at {line}")
        elif spawn.said == ANNOUNCE_SKIP:
            self._add(facts.AnnounceDecided(silent=True, why="announce_skip"), self._plan.planned[-1].place)
            self._closed = ("silent", None)

    def _archived(self) -> None:
        last = self._spawn.child.current
        if last.closing == "deleted":
            time = last.closed_ms if last.closed_ms is not None else last.end
            place = max(Place(time, last.place, 0, 1), self._plan.planned[-1].place)
            reason: Literal["cleanup", "expired"] = "cleanup" if is_cleaned_up(self._spawn) else "expired"
            self._add(facts.ChildArchived(child=self._child, reason=reason), place)

    def _add(self, event: facts.Event, place: Place, *, causation: str | None = None) -> None:
        task = self._spawn.task
        line = (
            task.message
            if task is not None
            else (self._spawn.call.line if self._spawn.call is not None else None)
        )
        root = self._world.links.root_of(self._world.links.id_of(line))
        self._plan.add(event, place, causation=causation or self._plan.last_id, correlation=root)

    def _evidence(self) -> str:
        spawn = self._spawn
        evidence: JsonObject = {
            "call": evidence_of(spawn.call.line) if spawn.call is not None else None,
            "result": evidence_of(spawn.call.result) if spawn.call is not None else None,
            "record": spawn.record.run_id if spawn.record is not None else None,
            "task": evidence_of(spawn.task.message) if spawn.task is not None else None,
            "reply": evidence_of(spawn.work.reply) if spawn.work is not None else None,
            "handed": [evidence_of(handed.at.step.message) for handed in spawn.handed],
            "mirror": evidence_of(spawn.mirror[0]) if spawn.mirror is not None else None,
        }
        return msgspec.json.encode(evidence, order="sorted").decode()


def _arguments(spawn: Spawn) -> JsonObject:
    return spawn.call.arguments if spawn.call is not None else {}


def _record(spawn: Spawn) -> JsonObject:
    return spawn.record.values if spawn.record is not None else {}
