"""Writes an OpenClaw state directory of a log, also while the log is written (EXP-1 to EXP-3).

What the format has no place for (the key of an archived transcript, who spawned an archived session) stands in
`intersession.json` at the top of the directory: the original passes it by, an import of ours reads it.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Final, Literal

import msgspec

from intersession_events.basics import ids
from intersession_events.basics.errors import ExportFailed, InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.basics.progress import Progress
from intersession_events.facts import LineImported, message_in, ready
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.transcripts.openclaw.export import entry_line, header_line, iso, kept_line
from intersession_projections.copies.openclaw_state.directory import NewDirectory, new_directory
from intersession_projections.copies.openclaw_state.entry import entry_of, kept_entry
from intersession_projections.copies.openclaw_state.lives import Generation, Life, life_of
from intersession_projections.copies.openclaw_state.records import record_of
from intersession_projections.views.run_outcomes.replies import told_in
from intersession_projections.views.sessions.taken_order import Taken, with_run

_SESSIONS: Final = ids.session_stream("")
_SPAWNS: Final = ids.spawn_stream("")
_STEM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,160}")
_AGENT: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_HEADER: Final = "session"


class StateSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the original must know to find the sessions: the whole content of `openclaw.json`."""

    default_agent: str = "main"
    main_key: str = "main"
    scope: Literal["per-sender", "global"] = "per-sender"
    agents: tuple[str, ...] = ()


@ready
class ExportReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an export wrote. `msgspec.to_builtins` gives what `--json` prints.

    `sessions` are in a list of the original, `archived` are not any more; `transcripts` counts files, `lines` those in
    them that are no messages. `position` is the place in the log that all of it shows.
    """

    directory: str
    log_id: str
    position: int
    agents: int = 0
    sessions: int = 0
    archived: int = 0
    transcripts: int = 0
    messages: int = 0
    lines: int = 0
    spawns: int = 0


def export_openclaw(
    log: Log,
    directory: Path,
    *,
    settings: StateSettings,
    at: int | None = None,
    keys: Collection[str] | None = None,
    progress: Progress | None = None,
) -> ExportReport:
    """Write the sessions of a log as a state directory, which must be empty or not there.

    `at` is a position, None is now; `keys` are the sessions to write, None is all. Texts are written as they are in the
    log, uncut and with whatever they hold.

    Raises:
        ExportFailed: the directory is not empty or can't be written, or a key has no session at that position.
        CorruptEvent: a row of the log can't be read.
    """
    position = log.head() if at is None else at
    wanted = _wanted(log, position, keys)
    with new_directory(directory) as made:
        exporting = _Export(log, made, settings, position)
        for number, key in enumerate(wanted, start=1):
            exporting.session(key)
            if progress is not None:
                progress(number, len(wanted))
        exporting.finish(set(wanted) if keys is not None else None)
        return exporting.report()


def _wanted(log: Log, position: int, keys: Collection[str] | None) -> list[str]:
    if keys is None:
        return [stream.removeprefix(_SESSIONS) for stream in log.streams(_SESSIONS)]
    for key in keys:
        if not _up_to(log, ids.session_stream(key), position):
            raise ExportFailed(f"there is no session {key!a} at position {position}; name one that is there")
    return sorted(set(keys))


def _up_to(log: Log, stream: str, position: int) -> list[Recorded]:
    return [item for item in log.stream(stream) if item.position <= position]


class _Export:
    def __init__(self, log: Log, made: NewDirectory, settings: StateSettings, position: int) -> None:
        self._log = log
        self._made = made
        self._settings = settings
        self._entries: dict[str, JsonObject] = defaultdict(dict)
        self._transcripts: list[JsonObject] = []
        self._stems: set[tuple[str, str]] = set()
        self._position = position
        self._archived = self._messages = self._lines = self._spawns = 0

    def session(self, key: str) -> None:
        """Write the transcripts of a session, and keep its entry for the end."""
        life = life_of(key, _up_to(self._log, ids.session_stream(key), self._position))
        if life is None:
            return
        agent = life.row.agent_id
        if _AGENT.fullmatch(agent) is None:
            raise ExportFailed(
                f"{agent!a} can't be a folder's name: no agent of the original can have this id"
            )
        written: str | None = None
        for generation in life.generations:
            is_current = generation is life.current
            if generation.lines or not is_current:
                stem = self._stem(life, generation)
                self._transcript(life, generation, stem)
                written = stem if is_current else None
        entries = self._entries[agent]
        if life.current is None:
            self._archived += 1
            return
        path = self._made.path / "agents" / agent / "sessions" / f"{written}.jsonl"
        entries[self._store_key(key)] = entry_of(
            life,
            # The entry of an imported chat may share its id with that of a topic: the original has it so.
            session_id=None if kept_entry(life).get("sessionId") else written or life.row.session_id,
            session_file=None if written is None else str(path),
        )

    def finish(self, only: Collection[str] | None) -> None:
        """Write the lists, of sessions and of sub-agents, and the settings; what says whose export it is comes last."""
        for agent, entries in self._entries.items():
            self._json(entries, "agents", agent, "sessions", "sessions.json")
        records: JsonObject = {}
        for stream in self._log.streams(_SPAWNS):
            found = record_of(told_in(self._log, _up_to(self._log, stream, self._position)))
            if found is not None and (only is None or found[0].child in only):
                records[found[0].run_id] = found[1]
        self._spawns = len(records)
        if records:
            self._json({"version": 2, "runs": records}, "subagents", "runs.json")
        self._json(self._openclaw_json(), "openclaw.json")
        about: JsonObject = {
            "version": 1,
            "logId": self._log.log_id,
            "position": self._position,
            "transcripts": self._transcripts,
        }
        self._json(about, "intersession.json")

    def report(self) -> ExportReport:
        """Return what was written."""
        return ExportReport(
            directory=str(self._made.path),
            log_id=self._log.log_id,
            position=self._position,
            agents=len(self._entries),
            sessions=sum(map(len, self._entries.values())),
            archived=self._archived,
            transcripts=len(self._transcripts),
            messages=self._messages,
            lines=self._lines,
            spawns=self._spawns,
        )

    def _transcript(self, life: Life, generation: Generation, stem: str) -> None:
        agent = life.row.agent_id
        name = f"{stem}.jsonl"
        if generation.closing is not None:
            name = f"{name}.{generation.closing}.{iso(generation.closed_ms).replace(':', '-')}"
        with self._made.file("agents", agent, "sessions", name) as file:
            file.writelines(self._written(generation))
        about = {
            "agent": agent,
            "stem": stem,
            "key": life.row.key,
            "sessionId": generation.session_id,
            "spawnedBy": life.row.spawned_by,
            "spawnDepth": life.row.spawn_depth or None,
        }
        self._transcripts.append(present(about))

    def _written(self, generation: Generation) -> Iterator[bytes]:
        parent: str | None = None
        if not generation.lines or not _is_header(generation.lines[0]):
            yield header_line(generation.session_id, generation.began_ms)
        for taken in generation.lines:
            event = taken.recorded.event
            if (message := message_in(event)) is not None:
                self._messages += 1
                event = msgspec.structs.replace(event, message=with_run(message, taken.run_id))
            elif isinstance(event, LineImported):
                self._lines += 1
            else:
                continue
            line = kept_line(event) or entry_line(
                msgspec.structs.replace(taken.recorded, event=event), parent, to_go_on=True
            )
            if line is not None:
                parent = line[0] or parent
                yield line[1]

    def _stem(self, life: Life, generation: Generation) -> str:
        """Return the name of a generation's file: the original's name, else its session id."""
        agent, session_id = life.row.agent_id, generation.session_id
        digest = hashlib.sha256(f"{life.row.key} {session_id}".encode()).hexdigest()[:32]
        for name in (*_names(life, generation), session_id, digest):
            place = (agent, name.lower())  # a file system may hold one name for both cases
            if _STEM.fullmatch(name) and ".jsonl" not in name and place not in self._stems:
                self._stems.add(place)
                return name
        raise ExportFailed(f"{life.row.key}: no file name is left for its transcript {session_id!a}")

    def _store_key(self, key: str) -> str:
        settings = self._settings
        if settings.scope != "global":
            return key
        return "global" if key == str(SessionKey.main(settings.default_agent, settings.main_key)) else key

    def _openclaw_json(self) -> JsonObject:
        settings = self._settings
        others = sorted({*settings.agents, *self._entries} - {settings.default_agent})
        return {
            "session": {"scope": settings.scope, "mainKey": settings.main_key},
            "agents": {
                "list": [
                    {"id": settings.default_agent, "default": True},
                    *({"id": agent} for agent in others),
                ]
            },
        }

    def _json(self, value: JsonObject, *names: str) -> None:
        with self._made.file(*names) as file:
            file.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def _names(life: Life, generation: Generation) -> Iterator[str]:
    entry = kept_entry(life)
    if generation is not life.current or not entry:
        return
    told, session_id = entry.get("sessionFile"), entry.get("sessionId")
    if isinstance(told, str):
        yield PurePosixPath(told).name.removesuffix(".jsonl")
    if not isinstance(session_id, str):
        return
    try:
        thread = SessionKey.recorded(life.row.key).thread
    except InvalidKey:
        thread = None
    if thread is not None:
        yield f"{session_id}-topic-{thread}"
    yield session_id


def _is_header(taken: Taken) -> bool:
    event = taken.recorded.event
    return isinstance(event, LineImported) and event.kind == _HEADER
