"""Finds the sessions of a state, and which transcripts are the generations of each (IMP-1, IMP-2). Pure."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Final

import msgspec

from intersession_events.basics.keys.key import SessionKey
from intersession_events.transcripts.openclaw.reading import files as reading_files
from intersession_events.transcripts.openclaw.reading import foreign_json, keys
from intersession_events.transcripts.openclaw.reading import lines as reading_lines
from intersession_events.transcripts.openclaw.reading import state as reading_state
from intersession_events.transcripts.openclaw.reconstruction.evidence import (
    Found,
    Words,
    key_from_content,
    keys_by_session_id,
)
from intersession_events.transcripts.openclaw.report import Note, Renamed, Skipped

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_TOPIC: Final = re.compile(r"(?P<id>.+?)-topic-(?P<topic>.+)")
_FILE: Final = re.compile(r"agents/(?P<agent>[^/]+)/sessions/(?P<name>[^/]+)$")

Place = tuple[str, str]
"""Agent of the directory, and stem of the file: what a transcript is, whatever happened to its name."""


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """One life of a key, between two resets.

    `entries` are what stores say of it; `closing` is how it ended, if no store has it any more; `reset_ms` is when it was
    reset, if the name of its file says so.
    """

    session_id: str
    agent: str
    stem: str
    start: int
    lines: tuple[reading_lines.Line, ...] = ()
    entries: tuple[reading_state.Entry, ...] = ()
    closing: reading_state.Closing | None = None
    closed_ms: int | None = None
    reset_ms: int | None = None

    @property
    def end(self) -> int:
        """The time of its last line, or of its beginning."""
        return self.lines[-1].time if self.lines else self.start

    @property
    def place(self) -> str:
        """A file to name it by, even if it has none of its own: it sorts before and beside that file's lines."""
        return self.lines[0].file if self.lines else f"agents/{self.agent}/sessions/{self.stem}.jsonl"


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session of the state. `original` is the key as its store has it, None if no store shows one.

    `exported` is what an export of ours says of its newest generation.
    """

    key: SessionKey
    original: str | None
    entry: reading_state.Entry | None
    generations: tuple[Generation, ...]
    exported: reading_state.Exported | None = None

    @property
    def spawned_by(self) -> str | None:
        """The session that spawned it, as its entry or our own export has it, in whatever spelling."""
        told = foreign_json.a_text(self.entry.values.get("spawnedBy")) if self.entry is not None else None
        return told or (self.exported.spawned_by if self.exported is not None else None)

    @property
    def spawn_depth(self) -> int | None:
        """How many spawns are above it, if its entry or our own export tells."""
        told = foreign_json.a_count(self.entry.values.get("spawnDepth")) if self.entry is not None else None
        return self.exported.spawn_depth if told is None and self.exported is not None else told

    @property
    def current(self) -> Generation:
        """The newest generation."""
        return self.generations[-1]


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """A state, read and sorted by session."""

    state: reading_state.OpenClawState
    sessions: tuple[Session, ...]
    renamed: tuple[Renamed, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[Note, ...]


def survey(state: reading_state.OpenClawState) -> Survey:
    """Sort a state by session. Total: everything unattributed gets a named key and a line in the report."""
    return _Surveyor(state).survey()


class _Surveyor:
    def __init__(self, state: reading_state.OpenClawState) -> None:
        self._state = state
        self._transcripts: list[reading_lines.Transcript] = []
        ends: dict[tuple[str, str | None], int] = {}
        for file in state.files:
            transcript = reading_lines.read_transcript(file, ends.get((file.agent, file.behind)))
            self._transcripts.append(transcript)
            if transcript.lines:
                ends[file.agent, file.stem] = transcript.lines[-1].time
        self._by_place: dict[Place, list[reading_lines.Transcript]] = defaultdict(list)
        for transcript in self._transcripts:
            self._by_place[transcript.file.agent, transcript.file.stem].append(transcript)
        self._entries: dict[SessionKey, list[tuple[Place, reading_state.Entry]]] = defaultdict(list)
        self._places: dict[SessionKey, list[Place]] = defaultdict(list)
        self._owner: dict[Place, SessionKey] = {}
        self._ids: dict[str, Place] = {}
        self._exported = dict(state.exported)
        self._order = {place: number for number, (place, _) in enumerate(state.exported)}
        self._behind = {
            (file.agent, file.behind): (file.agent, file.stem)
            for file in state.files
            if file.behind is not None
        }
        self._renamed: list[Renamed] = []
        self._notes: list[Note] = list(state.notes)

    def survey(self) -> Survey:
        for agent, entry in sorted(self._state.entries, key=lambda item: _rank(item[1])):
            self._claim(agent, entry)
        self._adopt()
        sessions = [self._session(key) for key in sorted(self._places, key=str)]
        return Survey(
            state=self._state,
            sessions=tuple(sessions),
            renamed=tuple(self._renamed),
            skipped=(*self._state.skipped, *(skip for found in self._transcripts for skip in found.skipped)),
            notes=(*self._notes, *(note for found in self._transcripts for note in found.notes)),
        )

    def _claim(self, agent: str, entry: reading_state.Entry) -> None:
        """Give an entry its key, and the key its transcript."""
        session_id = foreign_json.a_text(entry.values.get("sessionId"))
        channel = foreign_json.a_text(entry.values.get("channel")) or foreign_json.a_text(
            entry.values.get("provider")
        )
        key = entry.here or keys.canonical(
            entry.key, agent=agent, channel=channel, settings=self._state.settings
        )
        reason = _why_other(entry.key)
        if key is None:
            key = keys.kept_aside(agent, "imported", session_id or entry.key)
            reason = "no rule fits the key"
        if str(key) != entry.key and entry.here is None:
            self._renamed.append(Renamed(original=_printable(entry.key), key=str(key), reason=reason))
        place = self._place(agent, entry, key, session_id)
        owner = self._owner.setdefault(place, key)
        if owner != key:
            what = f"its transcript {place[1]} is that of {owner}, so it is a session without messages"
            self._notes.append(Note(subject=_printable(entry.key), what=what))
            place = (agent, f"{keys.kept_aside(agent, 'entry', entry.key).rest}")
            self._owner[place] = key
        self._entries[key].append((place, entry))
        if place not in self._places[key]:
            self._places[key].append(place)

    def _place(
        self, agent: str, entry: reading_state.Entry, key: SessionKey, session_id: str | None
    ) -> Place:
        """Return where an entry's transcript is, or would be."""
        named = _FILE.search(foreign_json.a_text(entry.values.get("sessionFile")) or "")
        candidates: list[Place] = []
        if named is not None:
            candidates.append(
                (
                    reading_files.agent_id_of(named["agent"]),
                    PurePosixPath(named["name"]).name.removesuffix(".jsonl"),
                )
            )
        if session_id is None:
            self._notes.append(
                Note(subject=_printable(entry.key), what="its entry has no session id; one was made up")
            )
            return (agent, keys.kept_aside(agent, "entry", entry.key).rest)
        if key.thread is not None:
            candidates.append((agent, f"{session_id}-topic-{key.thread}"))
        candidates.append((agent, session_id))
        place = next((place for place in candidates if place in self._by_place), candidates[-1])
        while place in self._behind:
            place = self._behind[place]
        return place

    def _adopt(self) -> None:
        """Find the key of every transcript that no entry has."""
        orphans = [place for place in self._by_place if place not in self._owner]
        if not orphans:
            return
        by_id = keys_by_session_id(self._transcripts, self._state.keys)
        entries = {
            session_id: Found(entry.key, "an entry of its session id")
            for _, entry in self._state.entries
            if (session_id := foreign_json.a_text(entry.values.get("sessionId")))
        }
        known = {**by_id, **entries}
        words = Words(self._transcripts, self._state.records)
        starts = [
            (place[0], self._by_place[place][0].start, str(key))
            for place, key in self._owner.items()
            if place in self._by_place
        ]
        for place in orphans:
            key, why = self._find(place, known, words, starts)
            self._owner[place] = key
            self._places[key].append(place)
            self._notes.append(Note(subject=self._by_place[place][0].file.path, what=why))

    def _find(
        self, place: Place, known: dict[str, Found], words: Words, starts: Sequence[tuple[str, int, str]]
    ) -> tuple[SessionKey, str]:
        agent, stem = place
        topic = _TOPIC.fullmatch(stem)
        exported = self._exported.get(place)
        found = Found(exported.key, "the export says so") if exported is not None else known.get(stem)
        if found is None and topic is not None and (base := known.get(topic["id"])) is not None:
            found = Found(f"{base.key}:topic:{topic['topic']}", f"a topic of that session, by {base.why}")
        if found is None:
            found = key_from_content(self._by_place[place][0], words, starts)
        if found is not None:
            key = keys.canonical(found.key, agent=agent, channel=None, settings=self._state.settings)
            if key is not None:
                return key, f"belongs to {key}: {found.why}"
        key = keys.kept_aside(agent, "archived", stem)
        why = "nothing in the state shows the key it had"
        return key, f"kept as {key}: {why if found is None else f'no rule fits the key {found.key}'}"

    def _session(self, key: SessionKey) -> Session:
        entries = self._entries[key]
        current = next(
            ((place, entry) for place, entry in reversed(entries) if not keys.is_run_alias(entry.key)),
            None,
        )
        generations = [self._generation(key, place) for place in self._places[key]]
        last = current[0] if current is not None else None
        # An export has a key's transcripts in their order. Whoever reset the session since then did so afterwards.
        late = len(self._order)
        generations.sort(
            key=lambda item: (
                (item.agent, item.stem) == last,
                self._order.get((item.agent, item.stem), late),
                item.start,
                item.place,
            )
        )
        newest = generations[-1]
        entry = current[1] if current is not None else None
        return Session(
            key=key,
            original=entry.key if entry is not None and entry.key != str(key) else None,
            entry=entry,
            generations=tuple(generations),
            exported=self._exported.get((newest.agent, newest.stem)),
        )

    def _generation(self, key: SessionKey, place: Place) -> Generation:
        agent, stem = place
        entries = [entry for where, entry in self._entries[key] if where == place]
        files = sorted(
            self._by_place.get(place, ()), key=lambda found: (found.file.closing is None, found.start)
        )
        last = files[-1].file if files else None
        closing = last if last is not None and last.closing is not None and not entries else None
        return Generation(
            session_id=self._session_id(key, place, entries),
            agent=agent,
            stem=stem,
            start=min((found.start for found in files), default=max(map(_updated, entries), default=0)),
            lines=tuple(self._merged(files)),
            entries=tuple(entries),
            closing=closing.closing if closing is not None else None,
            closed_ms=closing.closed_ms if closing is not None else None,
            reset_ms=last.closed_ms if last is not None and last.closing == "reset" else None,
        )

    def _session_id(self, key: SessionKey, place: Place, entries: Sequence[reading_state.Entry]) -> str:
        """Return an id that no other generation has: a topic may share that of its chat."""
        stem = place[1]
        exported = self._exported.get(place)
        topic = _TOPIC.fullmatch(stem)
        told = next(
            (found for entry in entries if (found := foreign_json.a_text(entry.values.get("sessionId")))),
            None,
        )
        said = exported.session_id if exported is not None and exported.key == str(key) else None
        # What is behind a reset has an id of its own here, that of the transcript stays with its first part.
        own = stem if place in self._behind.values() else None
        for candidate in (own, said, told, topic["id"] if topic is not None else None, stem):
            if (
                candidate is not None
                and _ID.fullmatch(candidate)
                and self._ids.setdefault(candidate, place) == place
            ):
                return candidate
        return hashlib.sha256(f"{key} {stem}".encode()).hexdigest()[:32]

    def _merged(self, files: Sequence[reading_lines.Transcript]) -> Iterable[reading_lines.Line]:
        """Yield the lines of a generation, once: a backup repeats those of its file."""
        seen: dict[str, str] = {}
        lines: list[reading_lines.Line] = []
        for number, found in enumerate(files):
            repeated = 0
            for line in found.lines:
                if number and seen.get(line.identity) == line.source:
                    repeated += 1
                    continue
                again = line.identity in seen
                seen.setdefault(line.identity, line.source)
                lines.append(
                    msgspec.structs.replace(line, identity=f"{line.identity}@{found.file.path}")
                    if again
                    else line
                )
            if repeated:
                what = f"{repeated} lines are those of another file of the same session, and were taken once"
                self._notes.append(Note(subject=found.file.path, what=what))
        return (
            sorted(lines, key=lambda line: (line.time, line.file, line.number)) if len(files) > 1 else lines
        )


def _rank(entry: reading_state.Entry) -> tuple[bool, int, str]:
    """Aliases first, then by age: the last entry of a key is its present meaning."""
    return (not keys.is_run_alias(entry.key), _updated(entry), entry.key)


def _updated(entry: reading_state.Entry) -> int:
    return foreign_json.a_count(entry.values.get("updatedAt")) or 0


def _why_other(original: str) -> str:
    if keys.is_run_alias(original):
        return "an alias of one run: it belongs to the cron job"
    if original.strip().lower() == "global":
        return "the one session of the global scope is its main session"
    return "an older spelling"


def _printable(text: str) -> str:
    return text if text.isprintable() else repr(text)
