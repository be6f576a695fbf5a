"""An OpenClaw state directory as it was read, before any interpretation: lines as bytes, entries, records."""

from typing import Literal

import msgspec

from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject
from intersession_events.transcripts.openclaw.report import Note, Skipped

Closing = Literal["reset", "deleted", "bak"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the state's own `openclaw.json` says about keys and loops."""

    scope: Literal["per-sender", "global"] = "per-sender"
    main_key: str = "main"
    default_agent: str = "main"
    max_turns: int = 5


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a `sessions.json` or of a database of `system`: its key as written there, its values, its source text.

    `here` is the key that it gets, where its system has no keys that the rules of a state directory could read.
    """

    file: str
    key: str
    values: JsonObject
    source: str
    here: SessionKey | None = None
    system: str = "openclaw"


class SourceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A transcript, of a file or of a database. `path` is relative to the state directory; `lines` are numbered from 1, blank ones left out.

    `stem` is the name without `.jsonl` and what follows it, so that an archived file has the identity it always had.
    `closing` and `closed_ms` say how and when it was archived; `modified_ms` is a last resort for lines without time.
    `behind` is the stem of the part before a reset, where the two are one transcript of a database; `aside` has the numbers of lines
    whose branch was given up: what they say was taken back.
    """

    path: str
    agent: str
    stem: str
    closing: Closing | None = None
    closed_ms: int | None = None
    modified_ms: int = 0
    behind: str | None = None
    aside: frozenset[int] = frozenset()
    lines: tuple[tuple[int, bytes], ...] = ()


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of a sub-agent's run: of `subagents/runs.json`, or of the database that the agents share."""

    run_id: str
    values: JsonObject
    source: str


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What our own export noted about a transcript, where the format has no place for it (EXP-3)."""

    key: str
    session_id: str | None = None
    spawned_by: str | None = None
    spawn_depth: int | None = None


class OpenClawState(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a state directory that concern sessions; what is read of another system is brought into the same form."""

    source: str
    settings: Settings = Settings()
    entries: tuple[tuple[str, Entry], ...] = ()
    """(agent of the directory, entry)"""
    files: tuple[SourceFile, ...] = ()
    records: tuple[RunRecord, ...] = ()
    exported: tuple[tuple[tuple[str, str], Exported], ...] = ()
    """((agent, stem of the file), what is said of it), of each key the oldest first"""
    keys: tuple[tuple[str, str, str], ...] = ()
    """(session id, the key that it had, how the state shows that)"""
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[Note, ...] = ()
