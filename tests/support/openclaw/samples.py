"""OpenClaw state directories for tests of the import: the project's own, and those that an environment variable names."""

import json
import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from intersession_events.basics import ids
from intersession_events.facts import MessageRecorded
from intersession_events.log.recorded import Draft
from intersession_events.stores.portable.log import PortableLog
from intersession_events.transcripts.openclaw.importing import import_openclaw
from intersession_events.transcripts.openclaw.plan import ImportPlan, plan_survey
from intersession_events.transcripts.openclaw.reading.files import read_state
from intersession_events.transcripts.openclaw.reconstruction.sessions import survey
from intersession_events.transcripts.openclaw.report import ImportReport
from support.paths import DATA

LOG_ID = "6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
OWN = DATA / "openclaw"
HOUSEHOLD = OWN / "household"
ONE_FOR_ALL = OWN / "one-for-all"
HOME = "agent:home:main"
DESK = "agent:desk:main"

_SAMPLES = os.environ.get("OPENCLAW_STATE_SAMPLES") or None

T = TypeVar("T")


def all_states() -> list[Any]:
    """Parameters: every state there is. Where no samples are given, one stands for them and says why it is skipped."""
    own = [pytest.param(path, id=path.name) for path in sorted(OWN.iterdir())]
    if _SAMPLES is None:
        reason = "OPENCLAW_STATE_SAMPLES names no directory of states written by OpenClaw itself"
        return [*own, pytest.param(OWN, id="samples", marks=pytest.mark.skip(reason=reason))]
    return [
        *own,
        *(pytest.param(path, id=f"sample-{path.name}") for path in sorted(Path(_SAMPLES).iterdir())),
    ]


def planned(directory: Path) -> ImportPlan:
    standing = directory.parent == OWN or (_SAMPLES is not None and directory.parent == Path(_SAMPLES))
    return _planned_once(directory) if standing else planned_anew(directory)


def planned_anew(directory: Path) -> ImportPlan:
    return plan_survey(survey(read_state(directory)), log_id=LOG_ID)


@cache
def _planned_once(directory: Path) -> ImportPlan:
    return planned_anew(directory)


def drafts_of(found: ImportPlan, stream: str) -> list[Draft]:
    return [item.draft for item in found.planned if item.stream == stream]


def session_of(found: ImportPlan, key: str) -> list[Draft]:
    return drafts_of(found, ids.session_stream(key))


def events(drafts: Iterable[Draft], kind: type[T]) -> list[T]:
    return [draft.event for draft in drafts if isinstance(draft.event, kind)]


def all_events(found: ImportPlan, kind: type[T]) -> list[T]:
    return events((item.draft for item in found.planned), kind)


def header(session_id: str = "s-1", **fields: Any) -> dict[str, Any]:
    return {
        "type": "session",
        "version": 3,
        "id": session_id,
        "timestamp": "2026-03-02T09:00:00.000Z",
        **fields,
    }


def message(entry_id: str, body: dict[str, Any], second: int = 1, **fields: Any) -> dict[str, Any]:
    time = f"2026-03-02T09:00:{second:02d}.000Z"
    return {"type": "message", "id": entry_id, "parentId": None, "timestamp": time, "message": body, **fields}


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text, "timestamp": 1772442000000}


def write_state(
    root: Path,
    lines: Sequence[dict[str, Any] | bytes],
    *,
    name: str = "s-1.jsonl",
    agent: str = "main",
    entries: dict[str, Any] | None = None,
) -> Path:
    """Write a small state: one transcript, and a store if entries are given."""
    folder = root / "agents" / agent / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    (folder / name).write_bytes(b"".join(text + b"\n" for text in texts))
    if entries is not None:
        (folder / "sessions.json").write_text(json.dumps(entries))
    return root


NOW = 1_800_000_000_000
"""When an import is made."""


def into(log: PortableLog, state: Path, **options: Any) -> ImportReport:
    """Import a state directory into a log."""
    return import_openclaw(state, log, clock=lambda: NOW, **options)


def texts(log: PortableLog, key: str) -> list[Any]:
    """Return what the messages of a session say, in order."""
    recorded = log.stream(ids.session_stream(key))
    return [item.event.message.content for item in recorded if isinstance(item.event, MessageRecorded)]
