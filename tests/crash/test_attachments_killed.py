"""A host is killed while it gets a sub-agent its files and its thread: the child starts once, with all of it, or not yet."""

import hashlib
import json
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from intersession_events.facts import (
    AttachmentsReady,
    AttachmentsRemoved,
    ChildArchived,
    RunQueued,
    SessionArchived,
    SessionOpened,
    SpawnAccepted,
    SpawnClosed,
    ThreadBound,
    ThreadOpened,
    ThreadUnbound,
)
from intersession_events.log.recorded import parts_in
from intersession_events.log.verifying.verification import verify_log
from support.any_log import log_at
from support.every_day import every_day
from support.paths import TESTS
from support.processes.forked import Forked

HOST = TESTS / "support" / "processes" / "preparing_host.py"
PATIENCE_S = 60.0
SHA256 = hashlib.sha256(b"the words of the file").hexdigest()


def run(directory: Path, url: str, threads: str, crash_at: str = "") -> int | None:
    """Run the host to its end, whichever that is."""
    with Forked(HOST, str(directory), url, threads, says=directory / "said", crash_at=crash_at) as child:
        ended = child.wait(PATIENCE_S)
        sys.stderr.write(child.said)
        return ended


def notes(directory: Path, what: str) -> list[dict[str, Any]]:
    lines = (directory / "notes").read_text().splitlines() if (directory / "notes").exists() else []
    return [line for line in map(json.loads, lines) if line["what"] == what]


def events(url: str) -> list[Any]:
    with log_at(url, read_only=True) as log:
        return [item.event for item in parts_in(log.all())]


def of(happened: list[Any], kind: type[Any]) -> list[Any]:
    return [event for event in happened if isinstance(event, kind)]


def children(happened: list[Any]) -> list[Any]:
    return [event for event in of(happened, SessionOpened) if ":subagent:" in event.key]


@pytest.mark.clause("P1", "P2", "P3", "P4", "P8", "ATT-3", "ATT-5", "SPAWN-12", "X9")
@pytest.mark.sampled("P4-keyed")
@pytest.mark.parametrize(
    ("point", "threads"),
    every_day(
        {
            f"{point}-{threads}": (point, threads)
            for point, threads in (
                ("P3", "none"),
                ("P4", "none"),
                *((point, "keyed") for point in ("P1", "P2", "P3", "P4", "P5", "P6", "P8")),
            )
        },
        "P1-keyed",
        "P2-keyed",
        "P3-none",
        "P4-keyed",
        "P8-keyed",
    ),
)
def test_a_child_starts_once_with_its_files_and_its_thread_wherever_its_host_was_killed(
    log_url: str, beside_log: Path, tmp_path: Path, point: str, threads: str
) -> None:
    assert run(tmp_path, log_url, threads, point) == -signal.SIGKILL
    before = events(log_url)
    if point in {"P1", "P2", "P3"}:
        assert children(before) == []
        assert notes(tmp_path, "turn") == []
    assert len(of(before, SpawnAccepted)) == (point != "P1")

    assert run(tmp_path, log_url, threads) == 0

    after = events(log_url)
    (accepted,) = of(after, SpawnAccepted)
    (child,) = children(after)
    assert child.key == accepted.child
    (ready,) = of(after, AttachmentsReady)
    assert Counter(event.run_id for event in of(after, RunQueued))[accepted.run_id] == 1
    for turn in notes(tmp_path, "turn"):
        assert turn["session"] == child.key
        assert turn["files"] == {"notes.txt": SHA256, ".manifest.json": ready.manifest_sha256}
    assert {line["answer"]["childSessionKey"] for line in notes(tmp_path, "answer")} == {child.key}
    assert [event.reason for event in of(after, SpawnClosed)] == ["announced"]
    opened: list[str | None] = [
        f"thread-{key}" for key in {line["key"] for line in notes(tmp_path, "thread")}
    ]
    wanted = 1 if threads == "keyed" else 0
    assert len(opened) == wanted
    assert [event.route.thread for event in of(after, ThreadOpened)] == opened
    assert len(of(after, ThreadBound)) == len(of(after, ThreadUnbound)) == wanted
    assert {line["thread"] for line in notes(tmp_path, "delivery")} == set(opened or [None])
    assert len(of(after, ChildArchived)) == len(of(after, SessionArchived)) == 1
    assert [event.directory for event in of(after, AttachmentsRemoved)] == [ready.directory]
    attachments = beside_log / "workspaces" / "main" / ".openclaw" / "attachments"
    assert [path.name for path in attachments.rglob("*")] == [".staging"]
    with log_at(log_url, read_only=True) as log:
        assert verify_log(log).counts == {}
