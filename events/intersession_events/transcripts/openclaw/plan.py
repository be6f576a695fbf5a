"""Plans an import: makes all events, per stream and in order of time, and the report, out of a state. Pure."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Final

import msgspec

from intersession_events.basics import ids
from intersession_events.transcripts.openclaw.reading.keys import kept_aside, mentioned
from intersession_events.transcripts.openclaw.reading.lines import Line
from intersession_events.transcripts.openclaw.reconstruction.drafts import Links, Planned
from intersession_events.transcripts.openclaw.reconstruction.exchange_events import (
    Chain,
    World,
    exchange_facts,
)
from intersession_events.transcripts.openclaw.reconstruction.exchanges import (
    Found,
    Stepped,
    find_exchanges,
    inter_session,
)
from intersession_events.transcripts.openclaw.reconstruction.session_events import (
    Lineage,
    planned_lines,
    route_of,
    session_facts,
)
from intersession_events.transcripts.openclaw.reconstruction.sessions import Session, Survey
from intersession_events.transcripts.openclaw.reconstruction.spawn_events import is_cleaned_up, spawn_facts
from intersession_events.transcripts.openclaw.reconstruction.spawns import FoundSpawns, Spawn, find_spawns
from intersession_events.transcripts.openclaw.reconstruction.steps import mirrors_of, steps_of
from intersession_events.transcripts.openclaw.report import ImportReport, Note, Renamed, Unattributed, folded

_TAKEN: Final = "the log has another session of this key: kept beside it, not mixed into it"


class ImportPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What an import would append: `planned` in the order of time over all streams, and the report of it.

    `generations` are the session ids of each session's stream, oldest first.
    """

    import_id: str
    planned: tuple[Planned, ...]
    generations: Mapping[str, tuple[str, ...]]
    report: ImportReport


def plan_survey(found: Survey, *, log_id: str, taken: Collection[str] = ()) -> ImportPlan:
    """Return the plan for a state that is already sorted by session."""
    return _Planner(found, log_id, taken).plan()


class _Planner:
    def __init__(self, found: Survey, log_id: str, taken: Collection[str]) -> None:
        self._survey = found
        self._log_id = log_id
        self._keys = {str(session.key): _key_here(session, taken) for session in found.sessions}
        self._links = Links()
        self._planned: list[Planned] = []
        self._notes: list[Note] = []

        @cache
        def canonical(text: str) -> str:
            key = mentioned(text, found.state.settings)
            return self._keys.get(key, key)

        self._mentioned = canonical

    def plan(self) -> ImportPlan:
        sessions = {self._keys[str(session.key)]: session for session in self._survey.sessions}
        steps = self._steps(sessions)
        mirrors = {
            line.place: (key, line, text)
            for key, session in sessions.items()
            for generation in session.generations
            for line, text in mirrors_of(generation.lines)
        }
        all_steps = [at for found in steps.values() for at in found]
        found = find_exchanges(all_steps, self._mentioned)
        spawned = find_spawns(sessions, steps, self._survey.state.records, mirrors, self._mentioned)
        self._link(sessions, found, spawned)
        spawns = {self._keys[str(spawn.child.key)]: spawn for spawn in spawned.spawns}
        for key, session in sessions.items():
            lineage = _lineage(session, spawns.get(key))
            self._planned += session_facts(
                session, key, log_id=self._log_id, links=self._links, lineage=lineage
            )
        unused = self._flows(sessions, found, spawned, mirrors)
        self._planned.sort(key=lambda planned: planned.place)
        report = self._report(all_steps, found, spawned, unused)
        return ImportPlan(
            import_id=report.import_id,
            planned=tuple(self._planned),
            generations={
                ids.session_stream(key): tuple(generation.session_id for generation in session.generations)
                for key, session in sessions.items()
            },
            report=report,
        )

    def _steps(self, sessions: Mapping[str, Session]) -> dict[str, list[Stepped]]:
        """Return the steps of each session. A forked transcript begins with copies of another's: they happened once."""
        steps: dict[str, list[Stepped]] = {key: [] for key in sessions}
        seen: set[str] = set()
        lives = [
            (generation.start, key, generation)
            for key, session in sessions.items()
            for generation in session.generations
        ]
        for _, key, generation in sorted(lives, key=lambda life: life[:2]):
            copies = 0
            own: set[str] = set()
            for step in steps_of(generation.lines):
                if step.message.entry_id is not None and step.message.source in seen:
                    copies += 1
                    continue
                own.add(step.message.source)
                source = self._mentioned(step.source) if step.source is not None else None
                steps[key].append(
                    Stepped(key=key, session_id=generation.session_id, step=step, source=source)
                )
            seen |= own
            if copies:
                what = f"{copies} user messages are copies of another transcript's: what they led to is counted there"
                self._notes.append(Note(subject=generation.place, what=what))
        return steps

    def _link(self, sessions: Mapping[str, Session], found: Found, spawned: FoundSpawns) -> None:
        """Name the event of each line, and what led to it, over all sessions."""
        lines = [
            item for key, session in sessions.items() for item in planned_lines(session, key, self._log_id)
        ]
        for line, event_id, _ in lines:
            self._links.name(line, event_id)
        for exchange in found.exchanges:
            primary = exchange.primary.at.step
            self._links.caused(
                primary.message, exchange.send.call.line if exchange.send is not None else None
            )
            before = primary
            for turn in (*exchange.turns, *([exchange.announce] if exchange.announce is not None else [])):
                self._links.caused(turn.at.step.message, before.reply or before.message)
                before = turn.at.step
        for spawn in spawned.spawns:
            if spawn.task is not None:
                self._links.caused(spawn.task.message, spawn.call.line if spawn.call is not None else None)
            for handed in spawn.handed:
                work = spawn.work
                self._links.caused(
                    handed.at.step.message, (work.reply or work.message) if work is not None else None
                )
        for line, event_id, parent in sorted(lines, key=lambda item: (item[0].time, item[0].place)):
            self._links.place(event_id, self._links.cause_of(line, parent))

    def _flows(
        self,
        sessions: Mapping[str, Session],
        found: Found,
        spawned: FoundSpawns,
        mirrors: Mapping[tuple[str, int], tuple[str, Line, str]],
    ) -> list[tuple[str, int]]:
        """Plan exchanges and spawns; return the notes of deliveries that belong to none."""
        used = {spawn.mirror[0].place for spawn in spawned.spawns if spawn.mirror is not None}
        by_text: dict[str, list[Line]] = {}
        for _, line, text in sorted(mirrors.values(), key=lambda item: (item[1].time, item[1].place)):
            by_text.setdefault(text, []).append(line)
        world = World(
            log_id=self._log_id,
            max_turns=self._survey.state.settings.max_turns,
            links=self._links,
            channels={
                key: channel
                for key, session in sessions.items()
                if (channel := session.key.channel or _route_channel(session)) is not None
            },
            routed={key for key, session in sessions.items() if _has_route(session)},
            mirrors=by_text,
        )
        chains: dict[tuple[str, int], Chain] = {}
        for exchange in found.exchanges:
            self._planned += exchange_facts(exchange, world, chains, used)
        for spawn in spawned.spawns:
            self._planned += spawn_facts(spawn, world, chains)
        return sorted(place for place in mirrors if place not in used)

    def _report(
        self, steps: list[Stepped], found: Found, spawned: FoundSpawns, unused: list[tuple[str, int]]
    ) -> ImportReport:
        state, sessions = self._survey.state, self._survey.sessions
        lines = [
            line for session in sessions for generation in session.generations for line in generation.lines
        ]
        turns = sum(len(exchange.turns) for exchange in found.exchanges)
        announced = [exchange.announce.at for exchange in found.exchanges if exchange.announce is not None]
        announces = len(announced)
        prompted = sum(at.source is not None for at in announced)
        left = [
            Unattributed(
                what="note of a delivery",
                where=f"{path}:{line}",
                reason="no announce or result reads like it",
            )
            for path, line in unused
        ]
        report = ImportReport(
            import_id="",  # derived below from the events and from the rest of this report
            source=state.source,
            sessions=len(sessions),
            generations=sum(len(session.generations) for session in sessions),
            messages=sum(line.message is not None for line in lines),
            inter_session=inter_session(steps),
            attributed=len(found.exchanges) + turns + prompted,
            exchanges=len(found.exchanges),
            exchanges_without_call=sum(exchange.send is None for exchange in found.exchanges),
            turns=turns,
            announces=announces,
            refused_sends=len(found.refused),
            refused_spawns=len(spawned.refused),
            spawns=len(spawned.spawns),
            events=len(self._planned),
            first_ms=self._planned[0].draft.time if self._planned else None,
            last_ms=self._planned[-1].draft.time if self._planned else None,
            lines=dict(sorted(Counter(line.kind for line in lines if line.message is None).items())),
            renamed=(*self._survey.renamed, *self._moved()),
            skipped=folded(self._survey.skipped),
            unattributed=(*found.unattributed, *spawned.unattributed, *left),
            notes=(*self._survey.notes, *self._notes),
            refused=(*found.refused, *spawned.refused),
        )
        events = hashlib.sha256("".join(planned.draft.id for planned in self._planned).encode())
        # A directory that was moved is the same import, so its place does not count; nor what a report of before did not name.
        told: dict[str, object] = msgspec.to_builtins(msgspec.structs.replace(report, source=""))
        del told["refused"]
        events.update(msgspec.json.encode(told))
        return msgspec.structs.replace(
            report, import_id=ids.derive(self._log_id, "import", events.hexdigest())
        )

    def _moved(self) -> Iterable[Renamed]:
        for original, key in self._keys.items():
            if original != key:
                yield Renamed(original=original, key=key, reason=_TAKEN)


def _key_here(session: Session, taken: Collection[str]) -> str:
    key = str(session.key)
    if key not in taken:
        return key
    return str(kept_aside(session.key.agent_id, "imported", session.current.session_id))


def _lineage(session: Session, spawn: Spawn | None) -> Lineage:
    if spawn is None:
        return Lineage()
    depth = session.spawn_depth
    return Lineage(spawn.requester, depth if depth is not None else 1, is_cleaned_up(spawn))


def _has_route(session: Session) -> bool:
    """Whether OpenClaw had a place to announce to: a chat that the key names, or an address it had kept."""
    if session.key.family in {"group", "channel"}:
        return True
    return session.entry is not None and route_of(session.entry) is not None


def _route_channel(session: Session) -> str | None:
    route = route_of(session.entry) if session.entry is not None else None
    return route.channel if route is not None else None
