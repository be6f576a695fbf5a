"""Golden logs: logs that a release wrote, each with what that release read out of it. They lie in `tests/golden/`.

Only what a user has is used to read them: the command line, `from intersession import …`, and the stored rows
(docs/howto/read-the-log.md). So a move of modules leaves this file alone.
"""

import hashlib
import json
import lzma
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from intersession import SessionSystem
from support.doors.command_line import ran
from support.paths import TESTS
from support.row_states import said

GOLDEN: Final = TESTS / "golden"
HEAD_KEY: Final = b"golden"
"""Signs the heads that are kept. It is no secret: whoever changes a golden log also changes the test."""

_PLACE: Final = "FOLDER"
_SHOWN: Final = 160
_STORIES: Final = (".beats", ".steps")

JSON = Any


class Row(NamedTuple):
    """A row of the log as it is stored."""

    position: int
    stream: str
    version: int
    topic: str
    state: bytes


class GoldenLog(NamedTuple):
    """A log that a release wrote, and what the release read out of it."""

    version: str
    name: str

    @property
    def database(self) -> Path:
        """The bytes of the closed database, compressed."""
        return GOLDEN / self.version / f"{self.name}.db.xz"

    def unpack(self, folder: Path) -> Path:
        """Return a copy of the database in a folder, which may be changed."""
        path = folder / f"{self.name}.db"
        path.write_bytes(lzma.decompress(self.database.read_bytes()))
        return path

    def readings(self) -> dict[str, JSON]:
        """Return what the release read: see `read`."""
        packed = self.database.with_name(f"{self.name}.json.xz").read_bytes()
        return dict(json.loads(lzma.decompress(packed)))


def golden_logs() -> list[GoldenLog]:
    """Return all that are kept, of every release."""
    return [
        GoldenLog(path.parent.name, path.name.removesuffix(".db.xz"))
        for path in sorted(GOLDEN.glob("*/*.db.xz"))
    ]


def pack(path: Path, readings: dict[str, JSON], into: Path) -> None:
    """Keep a closed database and what was read out of it as a golden log."""
    canonical = json.dumps(readings, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    for name, content in ((path.name, path.read_bytes()), (f"{path.stem}.json", canonical.encode())):
        (into / f"{name}.xz").write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def rows_of(path: Path) -> list[Row]:
    """Return the stored rows in the order of the log."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        found = connection.execute(
            "SELECT rowid, originator_id, originator_version, topic, state FROM stored_events ORDER BY rowid"
        )
        return [Row(*row) for row in found]


def digest_of(rows: list[Row]) -> str:
    """Return one SHA-256 over all rows: each is a line of its columns and the length of its state, then the state."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(f"{row.position} {row.stream} {row.version} {row.topic} {len(row.state)}\n".encode())
        digest.update(row.state)
    return digest.hexdigest()


def heads_of(rows: list[Row]) -> dict[str, str]:
    """Return the hash of the last event of each stream."""
    return {row.stream: json.loads(said(row.state))["hash"] for row in rows}


def read(path: Path, folder: Path) -> dict[str, JSON]:
    """Return all that this version reads out of a closed log. The folder is for copies; the log is left as it is.

    `bytes` is the SHA-256 of the database, `events`, `rows` and `heads` are of the stored rows, `head` is the exported
    head, signed with `HEAD_KEY`. `commandLine` and `tools` are lists of `{ask, answer}`.
    """
    copy = Path(shutil.copy(path, folder / path.name))
    rows = rows_of(copy)
    exported, key = folder / "head.json", folder / "head.key"
    key.write_bytes(HEAD_KEY)
    done = ran("verify", "--export-head", exported, "--key", key, "--store", copy)
    if done.exit_code != 0:
        raise ValueError(f"{path.name}: not verified, so nothing to keep: {done.out}{done.err}")
    command_line = [{"ask": ask, "answer": asked(copy, *ask)} for ask in _commands(copy, rows)]
    with SessionSystem(copy) as system:
        tools = [{"ask": ask, "answer": called(system, *ask, folder=folder)} for ask in _calls(rows)]
    return {
        "bytes": hashlib.sha256(path.read_bytes()).hexdigest(),
        "events": len(rows),
        "rows": digest_of(rows),
        "heads": heads_of(rows),
        "head": exported.read_text(encoding="utf-8"),
        "commandLine": command_line,
        "tools": tools,
    }


def asked(path: Path, *tokens: str) -> JSON:
    """Ask the command line about a log, which is only read; where the log lies is left out of the answer."""
    return _placeless(ran(*tokens, "--store", path, "--json").json, path.parent)


def called(system: SessionSystem, tool: str, arguments: dict[str, JSON], *, folder: Path) -> JSON:
    """Call a tool as the operator; where the log lies is left out of the answer."""
    return _placeless(system.tools().call(tool, arguments), folder)


def differences(was: JSON, now: JSON, at: str = "") -> Iterator[str]:
    """Tell what is said otherwise than it was, and where. Fields may be added; whatever was there must be the same.

    A story may tell more than it did, where it happened, and so name causes that it did not tell; what it told is still told, in
    the same order. With what was added to an answer, its bytes are more. A verification may name more that it does not prove.
    """
    if isinstance(was, dict) and isinstance(now, dict):
        for name, value in was.items():
            if name in now:
                yield from differences(value, now[name], f"{at}.{name}")
            else:
                yield f"{at}.{name}: is gone, was {_short(value)}"
    elif isinstance(was, list) and isinstance(now, list):
        yield from _list_differences(was, now, at)
    elif at.endswith(".bytes") and isinstance(was, int) and isinstance(now, int) and now >= was:
        return
    elif type(was) is not type(now) or was != now:
        yield f"{at}: is {_short(now)}, was {_short(was)}"


def _list_differences(was: list[JSON], now: list[JSON], at: str) -> Iterator[str]:
    if len(was) == len(now):
        for number, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from differences(one, other, f"{at}[{number}]")
    elif at.endswith(".unproven"):
        yield from (f"{at}: does not say any more: {said}" for said in was if said not in now)
    elif at.endswith(_STORIES):
        later = iter(now)
        for number, one in enumerate(was):
            kept = {name: value for name, value in one.items() if (name, value) != ("cause", None)}
            if not any(not list(differences(kept, other)) for other in later):
                yield f"{at}[{number}]: is gone or stands elsewhere, was {_short(one)}"
    else:
        yield f"{at}: is {_short(now)}, was {_short(was)}"


def _commands(path: Path, rows: list[Row]) -> Iterator[list[str]]:
    """Return what the command line is asked. Sub-agents are told with their spawns, and the tools read them, too."""
    middle = rows[len(rows) // 2]
    then = datetime.fromtimestamp(json.loads(said(middle.state))["time"] / 1000, UTC).isoformat()
    yield ["verify"]
    yield ["audit", "access", "--limit", "1000"]
    yield ["runs", "--limit", "1000"]
    for flow in asked(path, "runs", "--limit", "1000")["runs"]:
        yield ["replay", flow["id"], "--steps"]
    yield ["sessions", "--limit", "200", "--messages", "2"]
    yield ["sessions", "--limit", "200", "--as-of", str(middle.position)]
    yield ["sessions", "--limit", "200", "--as-of", then]
    listed = asked(path, "sessions", "--limit", "200")["sessions"]
    yield ["sessions", "--limit", "200", "--as", listed[0]["key"]]
    for key in filter(lambda key: ":subagent:" not in key, _session_keys(rows)):
        yield ["history", key, "--raw", "--limit", "100000"]
        yield ["replay", key, "--steps"]
    for session_id in sorted(_session_ids(rows) - {session["sessionId"] for session in listed}):
        yield ["history", session_id, "--raw"]


def _calls(rows: list[Row]) -> Iterator[tuple[str, dict[str, JSON]]]:
    """Return what the tools are asked: as of a position, because a log that is opened for writing goes on."""
    end, middle = rows[-1].position, rows[len(rows) // 2].position
    for position in (middle, end):
        yield "sessions_list", {"limit": 200, "messageLimit": 2, "asOf": position}
        for key in _session_keys(rows):
            history = {"sessionKey": key, "limit": 1000, "includeTools": True, "asOf": position}
            yield "sessions_history", history


def _session_keys(rows: list[Row]) -> list[str]:
    prefix = "session:"
    return sorted({row.stream.removeprefix(prefix) for row in rows if row.stream.startswith(prefix)})


def _session_ids(rows: list[Row]) -> set[str]:
    of_sessions = (json.loads(said(row.state))["data"] for row in rows if row.stream.startswith("session:"))
    return {data["sessionId"] for data in of_sessions if "sessionId" in data}


def _placeless(answer: JSON, folder: Path) -> JSON:
    """Leave the folder out, in which a copy of a log happens to lie."""
    if isinstance(answer, dict):
        return {name: _placeless(value, folder) for name, value in answer.items()}
    if isinstance(answer, list):
        return [_placeless(value, folder) for value in answer]
    return answer.replace(str(folder), _PLACE) if isinstance(answer, str) else answer


def _short(value: JSON) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
