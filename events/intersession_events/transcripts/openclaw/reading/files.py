"""Reads an OpenClaw state directory: the only part of the import that touches the file system.

Nothing outside the directory is read: a symbolic link that leads out of it is left out and reported, as is whatever
is no plain file.
"""

import re
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, cast

import msgspec

from intersession_events.basics.errors import ImportFailed
from intersession_events.basics.plain_json import JsonObject, is_object
from intersession_events.transcripts.openclaw.reading import databases, packed, state
from intersession_events.transcripts.openclaw.reading.foreign_json import (
    Unreadable,
    a_count,
    a_list,
    a_text,
    a_time,
    at,
    read_json5,
    read_object,
    text_of,
)
from intersession_events.transcripts.openclaw.report import Note, Skipped

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
_MAX_FILE_BYTES: Final = 256 * 1024 * 1024
_MAX_TURNS: Final = 5
_TRANSCRIPT: Final = re.compile(
    r"(?P<stem>.+)\.jsonl(?:\.(?P<how>reset|deleted|bak)(?:[.-](?P<when>.+?)(?P<packed>\.[0-9a-f]{32}\.zst)?)?)?"
)
_AGENT: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_EXPECTED: Final = (
    "expected an OpenClaw state directory: agents/<agentId>/sessions with sessions.json and *.jsonl in it, or "
    "agents/<agentId>/agent/openclaw-agent.sqlite"
)


def read_state(directory: Path) -> state.OpenClawState:
    """Read a state directory.

    Raises:
        ImportFailed: it is no directory, can't be read, or has no sessions in it.
    """
    return _Reader(directory).read()


def agent_id_of(text: str) -> str:
    """Return an agent's id as OpenClaw normalises it: invalid characters become dashes, nothing becomes `main`."""
    folded = text.strip().lower()
    if _AGENT.fullmatch(folded):
        return folded
    return re.sub(r"[^a-z0-9_-]+", "-", folded).strip("-")[:64] or "main"


def is_agent_id(text: str) -> bool:
    """Whether a text can be the id of an agent."""
    return _AGENT.fullmatch(text) is not None


class _Reader:
    def __init__(self, directory: Path) -> None:
        self._given = directory
        self._root = directory
        self._skipped: list[Skipped] = []
        self._notes: list[Note] = []

    def read(self) -> state.OpenClawState:
        try:
            self._root = self._given.resolve(strict=True)
            if not self._root.is_dir():
                raise ImportFailed(f"{self._given} is no directory; {_EXPECTED}")
            found = sorted(self._root.iterdir())
        except (OSError, RuntimeError, ValueError) as error:
            raise ImportFailed(f"{self._given} can't be read ({error}); {_EXPECTED}") from error
        settings = self._settings() if self._root / "openclaw.json" in found else state.Settings()
        entries: list[tuple[str, state.Entry]] = []
        files: list[state.SourceFile] = []
        records = list(self._records())
        keys = list(self._cron_runs())
        self._notes += self._schedules()
        for agent, database in self._databases():
            entries += [(agent, entry) for entry in database.entries]
            files += database.files
            records += database.records
            keys += database.keys
            self._skipped += database.skipped
            self._notes += database.notes
        for agent, folder in self._folders(settings):
            for path in self._plain_files(folder):
                if path.name == "sessions.json":
                    entries += [(agent, entry) for entry in self._entries(path)]
                elif found_file := self._transcript(agent, path):
                    files.append(found_file)
        if not entries and not files:
            raise ImportFailed(f"{self._given} has no sessions in it; {_EXPECTED}")
        return state.OpenClawState(
            source=_shown(self._given),
            settings=settings,
            entries=tuple(entries),
            files=tuple(files),
            records=tuple(records),
            exported=tuple(self._exported()),
            keys=tuple(keys),
            skipped=tuple(self._skipped),
            notes=tuple(self._notes),
        )

    def _folders(self, settings: state.Settings) -> Iterator[tuple[str, Path]]:
        """Yield (agent, folder of sessions); the old place of the default agent's last."""
        for home in self._listed(self._root / "agents"):
            if (home / "sessions").is_dir():
                agent = agent_id_of(home.name)
                if agent != home.name:
                    self._note(
                        self._name(home), f"read as agent {agent}: no agent can have the folder's name"
                    )
                yield agent, home / "sessions"
        if (self._root / "sessions").is_dir():
            yield settings.default_agent, self._root / "sessions"

    def _databases(self) -> Iterator[tuple[str, databases.Read]]:
        """Yield (agent, what its database has), and what the database has that all agents share."""
        for home in self._listed(self._root / "agents"):
            path, agent = home / "agent" / "openclaw-agent.sqlite", agent_id_of(home.name)
            if path.exists() and self._inside(path):
                archived = partial(self._beside, home / "sessions")
                moved = self._listed(home / "session-sqlite-import-archive")
                if moved:
                    what = f"left out: {len(moved)} files that OpenClaw has taken into its database"
                    self._note(self._name(moved[0].parent), what)
                yield agent, databases.read_agent(path, self._name(path), agent, archived)
        path = self._root / "state" / "openclaw.sqlite"
        if path.exists() and self._inside(path):
            yield "", databases.read_shared(path, self._name(path))

    def _beside(self, folder: Path, name: str) -> bytes | None:
        return self._whole(folder / name) if (folder / name).exists() else None

    def _listed(self, folder: Path) -> list[Path]:
        """Return what lies in a folder of the state, by name; nothing if it is not there or leads outside."""
        try:
            if not folder.is_dir() or not self._inside(folder):
                return []
            return sorted(folder.iterdir())
        except OSError as error:
            self._note(self._name(folder), f"left out: {error.strerror or error}")
            return []

    def _plain_files(self, folder: Path) -> Iterator[Path]:
        for path in self._listed(folder):
            try:
                if not self._inside(path):
                    continue
                if stat.S_ISREG(path.stat().st_mode):
                    yield path
                elif not stat.S_ISDIR(path.stat().st_mode):
                    self._note(self._name(path), "left out: it is no plain file")
            except OSError as error:
                self._note(self._name(path), f"left out: {error.strerror or error}")

    def _inside(self, path: Path) -> bool:
        try:
            inside = path.resolve(strict=True).is_relative_to(self._root)
        except (OSError, RuntimeError):
            inside = False
        if not inside:
            self._note(
                self._name(path), "left out: a symbolic link that leads out of the directory, or nowhere"
            )
        return inside

    def _settings(self) -> state.Settings:
        path = self._root / "openclaw.json"
        source = self._whole(path)
        if source is None:
            return state.Settings()
        try:
            values = read_json5(source)
        except Unreadable as reason:
            self._note(
                "openclaw.json", f"{reason}; the defaults were used for scope, main key and default agent"
            )
            return state.Settings()
        if a_text(at(values, "session", "store")):
            self._note(
                "openclaw.json", "session.store is set; only stores inside this directory were looked for"
            )
        listed = [item for item in a_list(at(values, "agents", "list")) if a_text(at(item, "id"))]
        chosen = next((item for item in listed if at(item, "default") is True), listed[0] if listed else None)
        entries = at(
            values, "agents", "entries"
        )  # of later releases, which have no default agent but this one
        named = a_text(at(values, "agents", "defaults", "systemAgent", "agentId"))
        named = named or (next(iter(entries), None) if is_object(entries) else None)
        turns = a_count(at(values, "session", "agentToAgent", "maxPingPongTurns"))
        return state.Settings(
            scope="global" if at(values, "session", "scope") == "global" else "per-sender",
            main_key=(a_text(at(values, "session", "mainKey")) or "main").strip().lower(),
            default_agent=agent_id_of(a_text(at(chosen, "id")) or named or "main"),
            max_turns=min(turns, _MAX_TURNS) if turns is not None else _MAX_TURNS,
        )

    def _entries(self, path: Path) -> Iterator[state.Entry]:
        for key, values, source in self._objects(path):
            yield state.Entry(file=self._name(path), key=key, values=values, source=source)

    def _records(self) -> Iterator[state.RunRecord]:
        path = self._root / "subagents" / "runs.json"
        if not path.exists() or not self._inside(path):
            return
        for run_id, values, source in self._objects(path, "runs"):
            yield state.RunRecord(run_id=run_id, values=values, source=source)

    def _exported(self) -> Iterator[tuple[tuple[str, str], state.Exported]]:
        """Yield the notes of our own export about its transcripts, if this is one."""
        path = self._root / "intersession.json"
        if not path.exists() or not self._inside(path):
            return
        source = self._whole(path)
        try:
            values = read_object(source)[0] if source is not None else {}
        except Unreadable as reason:
            self._note(self._name(path), f"left out: {reason}")
            return
        for item in a_list(values.get("transcripts")):
            agent, stem, key = (a_text(at(item, name)) for name in ("agent", "stem", "key"))
            if agent is not None and stem is not None and key is not None:
                yield (
                    (agent, stem),
                    state.Exported(
                        key=key,
                        session_id=a_text(at(item, "sessionId")),
                        spawned_by=a_text(at(item, "spawnedBy")),
                        spawn_depth=a_count(at(item, "spawnDepth")),
                    ),
                )

    def _objects(self, path: Path, under: str | None = None) -> Iterator[tuple[str, JsonObject, str]]:
        """Yield (name, values, source) of each object in a file that is an object of objects."""
        source = self._whole(path)
        if source is None:
            return
        try:
            _, raws = read_object(source, of_objects=True)
            if under is not None:
                _, raws = read_object(bytes(raws.get(under, b"{}")), of_objects=True)
        except Unreadable as reason:
            self._skipped.append(Skipped(file=self._name(path), line=1, last_line=1, reason=str(reason)))
            return
        for name, raw in raws.items():
            try:
                values, _ = read_object(bytes(raw))
            except Unreadable as reason:
                self._note(f"{self._name(path)}: {_shown(name)}", f"left out: {reason}")
                continue
            yield name, values, text_of(raw)

    def _cron_runs(self) -> Iterator[tuple[str, str, str]]:
        for path in self._plain_files(self._root / "cron" / "runs"):
            for _, line in self._lines(path):
                try:
                    values, _ = read_object(line)
                except Unreadable:
                    continue  # a run log holds no conversation, and nothing is lost where it tells no key
                session_id, key = a_text(values.get("sessionId")), a_text(values.get("sessionKey"))
                if session_id and key:
                    yield session_id, key, "cron's run log"

    def _schedules(self) -> Iterator[Note]:
        path = self._root / "cron" / "jobs.json"
        source = self._whole(path) if path.exists() else None
        try:
            jobs = a_list(read_object(source)[0].get("jobs")) if source is not None else []
        except Unreadable as reason:
            yield Note(subject=self._name(path), what=f"left out: {reason}")
            return
        for job in jobs:
            text = msgspec.json.encode(job).decode()
            job_id = a_text(at(job, "id")) or "without an id"
            yield databases.not_taken_over(job_id, a_text(at(job, "name")) or job_id, text)

    def _transcript(self, agent: str, path: Path) -> state.SourceFile | None:
        match = _TRANSCRIPT.fullmatch(path.name)
        if match is None:
            if path.suffix not in {".lock", ".tmp"}:
                self._note(self._name(path), "left out: it is no transcript")
            return None
        when = match["when"]
        closed = None
        if when is not None:
            date, _, time = when.partition("T")
            closed = a_time(f"{date}T{time.replace('-', ':')}")
        return state.SourceFile(
            path=self._name(path),
            agent=agent,
            stem=_shown(match["stem"]),
            closing=cast("state.Closing | None", match["how"]),
            closed_ms=closed,
            modified_ms=int(path.stat().st_mtime * 1000),
            lines=tuple(self._unpacked(path) if match["packed"] else self._lines(path)),
        )

    def _unpacked(self, path: Path) -> list[tuple[int, bytes]]:
        content = self._whole(path)
        text = packed.unpacked(content, self._name(path)) if content is not None else None
        if content is not None and text is None:
            self._skip(self._name(path), 1, "its compressed text is damaged")
        return packed.numbered(text or b"")

    def _lines(self, path: Path) -> Iterator[tuple[int, bytes]]:
        """Yield the numbered lines of a file. One that is too long is passed over without being held in memory."""
        name = self._name(path)
        number = 0
        try:
            with path.open("rb") as file:
                while line := file.readline(MAX_LINE_BYTES + 1):
                    number += 1
                    if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                        while (more := file.readline(MAX_LINE_BYTES)) and not more.endswith(b"\n"):
                            pass
                        self._skip(name, number, f"longer than {MAX_LINE_BYTES} bytes")
                    elif line.strip():
                        yield number, line.strip()
        except OSError as error:
            self._skip(name, number + 1, f"can't be read: {error.strerror or error}")

    def _whole(self, path: Path) -> bytes | None:
        name = self._name(path)
        try:
            if not self._inside(path) or not stat.S_ISREG(path.stat().st_mode):
                return None
            if path.stat().st_size > _MAX_FILE_BYTES:
                self._skip(name, 1, f"larger than {_MAX_FILE_BYTES} bytes")
                return None
            return path.read_bytes()
        except OSError as error:
            self._skip(name, 1, f"can't be read: {error.strerror or error}")
            return None

    def _skip(self, file: str, line: int, reason: str) -> None:
        self._skipped.append(Skipped(file=file, line=line, last_line=line, reason=reason))

    def _note(self, subject: str, what: str) -> None:
        self._notes.append(Note(subject=subject, what=what))

    def _name(self, path: Path) -> str:
        try:
            return _shown(path.relative_to(self._root).as_posix())
        except ValueError:
            return _shown(path)


def _shown(path: Path | str) -> str:
    """Return a name that can be stored: a file's name may be bytes that are no text."""
    return str(path).encode("utf-8", "backslashreplace").decode()
