"""Reads the databases of the original's later releases, one of each agent and one that they share (IMP-5).

Each is read at one moment (`opened_database`), beside the original too.
"""

import re
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from intersession_events.basics.errors import ImportFailed
from intersession_events.basics.plain_json import JsonObject
from intersession_events.transcripts.openclaw.reading import packed, state
from intersession_events.transcripts.openclaw.reading.branches import PENDING, abandoned, reset_of
from intersession_events.transcripts.openclaw.reading.database_files import opened_database
from intersession_events.transcripts.openclaw.reading.foreign_json import (
    Unreadable,
    a_text,
    at,
    read_object,
)
from intersession_events.transcripts.openclaw.report import Note, Skipped

MOST_BYTES: Final = 16 * 1024 * 1024
_AGENT: Final = 23
_SHARED: Final = 18
_OF_AGENTS: Final = frozenset(
    [
        "schema_meta",
        "session_nodes",
        "session_windows",
        "transcript_events",
        "session_pending_inputs",
        "session_transcript_archives",
        "session_transcript_cold_archives",
    ]
)
_OF_ALL: Final = frozenset(["schema_meta", "subagent_runs", "cron_jobs", "agent_databases"])
_INDEX: Final = re.compile(
    r"^sqlite_|_fts|_vec|_index_|_identities$|_watermarks$|_active_events$|_validation_pending$"
)
_HOME: Final = re.compile(r"agents/[^/]+/agent/openclaw-agent\.sqlite")
_BEFORE_SESSIONS: Final = 3
"""The last version of an agent's database that has no sessions in it: they were in files then."""


class Read(msgspec.Struct, kw_only=True):
    """What a database has, in the words of a state directory. `keys` has (session id, key, why) of its transcripts."""

    entries: list[state.Entry] = msgspec.field(default_factory=list[state.Entry])
    files: list[state.SourceFile] = msgspec.field(default_factory=list[state.SourceFile])
    records: list[state.RunRecord] = msgspec.field(default_factory=list[state.RunRecord])
    keys: list[tuple[str, str, str]] = msgspec.field(default_factory=list[tuple[str, str, str]])
    skipped: list[Skipped] = msgspec.field(default_factory=list[Skipped])
    notes: list[Note] = msgspec.field(default_factory=list[Note])


def read_agent(path: Path, name: str, agent: str, archived: Callable[[str], bytes | None]) -> Read:
    """Read the database of an agent. `archived` gives the bytes of a file beside its transcripts; None if there is none.

    Raises:
        ImportFailed: its schema is another one, it is no database, or it can't be read.
    """
    with _opened(path, name, _AGENT) as database:
        return _Agent(database, name, agent, archived).read() if database is not None else _left_out(name)


def read_shared(path: Path, name: str) -> Read:
    """Read the database that the agents share: records of sub-agents, and which schedules there are.

    Raises:
        ImportFailed: as above.
    """
    found = Read()
    with _opened(path, name, _SHARED) as database:
        if database is None:
            return _left_out(name)
        for run_id, text in database.execute("SELECT run_id, payload_json FROM subagent_runs ORDER BY 1"):
            try:
                values, _ = read_object(text.encode())
            except Unreadable as reason:
                found.notes.append(
                    Note(subject=f"{name}: sub-agent run {run_id}", what=f"left out: {reason}")
                )
                continue
            execution = at(values, "execution")
            told = {key: at(execution, key) for key in ("startedAt", "endedAt", "outcome")}
            values |= {key: value for key, value in told.items() if value is not None}
            found.records.append(state.RunRecord(run_id=run_id, values=values, source=text))
        for job_id, job_name, text in database.execute(
            "SELECT job_id, name, job_json FROM cron_jobs ORDER BY 1"
        ):
            found.notes.append(not_taken_over(job_id, job_name, text))
        for agent, where in database.execute("SELECT agent_id, path FROM agent_databases ORDER BY 1"):
            if _HOME.fullmatch(where) is None:
                what = f"the database of agent {agent} is elsewhere, and was left out: {where}"
                found.notes.append(Note(subject=name, what=what))
        found.notes += _unread(database, name, _OF_ALL)
    return found


def not_taken_over(job_id: str, name: str, source: str) -> Note:
    """Return the note of a schedule: an import has what was said, and begins nothing."""
    try:
        job = read_object(source.encode())[0]
    except (Unreadable, UnicodeEncodeError):
        job = {}
    schedule = msgspec.json.encode(job.get("schedule")).decode()
    what = f"its schedule {schedule} (agent {a_text(job.get('agentId')) or 'of its own'}) is not taken over: write it into cron.jobs"
    return Note(subject=f"cron job {name} ({job_id})", what=what)


class _Window(NamedTuple):
    session_id: str
    key: str
    updated: int
    aside: frozenset[int]


class _Agent:
    def __init__(
        self, database: sqlite3.Connection, name: str, agent: str, archived: Callable[[str], bytes | None]
    ) -> None:
        self._database = database
        self._name = name
        self._agent = agent
        self._archived = archived
        self._found = Read()

    def read(self) -> Read:
        self._entries()
        cold = dict[str, tuple[str, bytes | None]]()
        sql = "SELECT session_id, archive_name, archive_blob FROM session_transcript_cold_archives"
        for session_id, archive, blob in self._database.execute(sql):
            cold[session_id] = archive, blob
        sql = "SELECT session_id, session_key, updated_at FROM session_windows ORDER BY 1"
        for session_id, key, updated in self._database.execute(sql):
            lines = list(self._lines(session_id))
            if session_id in cold:
                lines = [*self._cold(session_id, *cold[session_id]), *lines]
            window = _Window(session_id, key, updated, abandoned(lines))
            self._transcript(window, [*lines, *self._pending(session_id, lines[-1][0] if lines else 0)])
        self._archives()
        self._found.notes += _unread(self._database, self._name, _OF_AGENTS)
        return self._found

    def _entries(self) -> None:
        sql = "SELECT session_key, CAST(entry_json AS BLOB) FROM session_nodes ORDER BY 1"
        for key, text in self._database.execute(sql):
            try:
                values, _ = read_object(text)
            except Unreadable as reason:
                self._found.notes.append(Note(subject=f"{self._name}: {key}", what=f"left out: {reason}"))
                continue
            self._found.entries.append(
                state.Entry(file=self._name, key=key, values=with_route(values), source=text.decode())
            )

    def _lines(self, session_id: str) -> Iterator[tuple[int, bytes]]:
        """Yield the events of a transcript as numbered lines: the event of sequence number 0 is line 1."""
        sql = """
            SELECT seq, CAST(event_json AS BLOB), event_zstd FROM transcript_events WHERE session_id = ? ORDER BY seq
        """
        for seq, text, content in self._database.execute(sql, (session_id,)):
            line = text if text is not None else self._unpacked(content, f"{session_id}:{seq + 1}")
            if line is None or len(line) > MOST_BYTES:
                why = (
                    f"longer than {MOST_BYTES} bytes"
                    if line is not None
                    else "its compressed text is damaged"
                )
                self._skip(session_id, seq + 1, why)
            else:
                yield seq + 1, line

    def _cold(self, session_id: str, archive: str, blob: bytes | None) -> list[tuple[int, bytes]]:
        content = blob if blob is not None else self._archived(f"cold/{archive}")
        text = self._unpacked(content, archive) if content is not None else None
        if text is None:
            why = "damaged" if content is not None else "missing"
            self._skip(session_id, 1, f"its transcript was moved to {archive}, which is {why}")
            return []
        return packed.numbered(text)

    def _pending(self, session_id: str, behind: int) -> Iterator[tuple[int, bytes]]:
        """Yield the inputs that no run has taken, each as a line of its own: they are kept, and not run."""
        sql = """
            SELECT input_id, state, run_id, accepted_at, CAST(message_json AS BLOB) FROM session_pending_inputs
            WHERE session_id = ? AND consumed_event_id IS NULL ORDER BY seq
        """
        for number, (input_id, how, run_id, accepted, message) in enumerate(
            self._database.execute(sql, (session_id,)), behind + 1
        ):
            head = {"type": PENDING, "id": input_id, "timestamp": accepted, "state": how, "runId": run_id}
            body = msgspec.json.encode({**head, "message": msgspec.Raw(message)})
            self._note(session_id, f"input {input_id} was {how}, and no run has taken it: kept, and not run")
            yield number, body

    def _transcript(self, window: _Window, lines: list[tuple[int, bytes]]) -> None:
        """Add a transcript, in parts where it was reset: the original keeps the session id, and shows what is behind."""
        if window.aside:
            what = "lines are of a branch that was given up: kept, and not part of what was said"
            self._note(window.session_id, f"{len(window.aside)} {what}")
        stem = window.session_id
        before: str | None = None
        part: list[tuple[int, bytes]] = []
        resets: set[str] = set()
        for number, line in lines:
            reset = reset_of(line)
            # An id that is there again names the same reset: its line is told as a duplicate.
            if reset is not None and part and reset not in resets:
                resets.add(reset)
                self._part(window, stem, part, before)
                stem, part, before = f"{window.session_id}.{reset}", [], stem
            part.append((number, line))
        if part:
            self._part(window, stem, part, before)

    def _part(self, window: _Window, stem: str, lines: list[tuple[int, bytes]], before: str | None) -> None:
        self._found.keys.append((stem, window.key, "its row in the database says so"))
        self._found.files.append(
            state.SourceFile(
                path=f"{self._name}/{window.session_id}",
                agent=self._agent,
                stem=stem,
                modified_ms=window.updated,
                lines=tuple(lines),
                behind=before,
                aside=window.aside,
            )
        )

    def _archives(self) -> None:
        """Name the keys of archived transcripts, and read those that are in the database alone."""
        sql = "SELECT session_id, session_key, reason, encoding, archive_blob, archive_name, created_at FROM session_transcript_archives ORDER BY 1, 2"
        for session_id, key, reason, encoding, blob, archive, created in self._database.execute(sql):
            self._found.keys.append((session_id, key, "the row of its archive says so"))
            if self._archived(archive) is not None:
                continue
            text = self._unpacked(blob, archive) if encoding == "zstd" else bytes(blob)
            if text is None:
                self._skip(session_id, 1, "its compressed archive is damaged")
                continue
            self._found.files.append(
                state.SourceFile(
                    path=f"{self._name}/{archive}",
                    agent=self._agent,
                    stem=session_id,
                    closing=reason,
                    closed_ms=created,
                    modified_ms=created,
                    lines=tuple(packed.numbered(text)),
                )
            )

    def _unpacked(self, content: bytes, where: str) -> bytes | None:
        return packed.unpacked(content, f"{self._name}/{where}")

    def _skip(self, session_id: str, line: int, reason: str) -> None:
        path = f"{self._name}/{session_id}"
        self._found.skipped.append(Skipped(file=path, line=line, last_line=line, reason=reason))

    def _note(self, session_id: str, what: str) -> None:
        self._found.notes.append(Note(subject=f"{self._name}/{session_id}", what=what))


def with_route(values: JsonObject) -> JsonObject:
    """Return the values of an entry with its route where earlier releases had it."""
    delivery = values.get("delivery")
    route = at(delivery, "context")
    return values if route is None else {**values, "deliveryContext": route}


def _unread(database: sqlite3.Connection, name: str, read: frozenset[str]) -> Iterator[Note]:
    """Yield the note of the tables that an import does not read, with the rows in each; indexes for search are left out."""
    sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY 1"
    tables = [table for (table,) in database.execute(sql).fetchall()]
    others = [table for table in tables if table not in read and not _INDEX.search(table)]
    rows = {
        table: database.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]  # noqa: S608 - names of its own schema
        for table in others
    }
    told = ", ".join(f"{table} ({count})" for table, count in rows.items() if count)
    if told:
        yield Note(subject=name, what=f"tables without a conversation, and their rows, were left out: {told}")


def _left_out(name: str) -> Read:
    return Read(notes=[Note(subject=name, what="left out: a database of this age has no sessions in it")])


@contextmanager
def _opened(path: Path, name: str, version: int) -> Generator[sqlite3.Connection | None]:
    """Open a database for reading; None if it is from before sessions were in databases."""
    with opened_database(path, name) as database:
        (found,) = database.execute("PRAGMA user_version").fetchone()
        if found <= _BEFORE_SESSIONS:
            yield None
            return
        if found != version:
            how = (
                "use a later release of this"
                if found > version
                else "let OpenClaw 2026.9.6 bring it up to date (openclaw doctor --fix)"
            )
            raise ImportFailed(f"{name} has schema {found}, and schema {version} is read here: {how}")
        yield database
