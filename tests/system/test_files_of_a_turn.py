"""An agent is told of its files: its workspace, and what a spawn handed to it."""

import asyncio
import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, Turn
from intersession_actors.outside.attachments.workspaces import Attachment
from intersession_events.facts import AttachmentsRemoved, SpawnClosed
from support.running import QUIET, Booth, Gate, wait_for

FILES: list[dict[str, Any]] = [
    {"name": "notes.txt", "content": "Buy milk.", "mimeType": "text/plain"},
    {"name": "dot.png", "content": base64.b64encode(b"\x89PNG\0").decode(), "encoding": "base64"},
]
ON: dict[str, Any] = {"tools": {"sessions_spawn": {"attachments": {"enabled": True}}}}


class Looking:
    """An agent that says of each turn what it was told of files, and what is in them."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Path | None, tuple[Attachment, ...], list[bytes]]] = []

    def __call__(self, turn: Turn) -> str:
        read = [file.path.read_bytes() for file in turn.attachments if file.path is not None]
        if turn.step == "message":
            self.seen.append((turn.session_key, turn.workspace, turn.attachments, read))
        return "done" if turn.step == "message" else turn.skip_word


def spawned(system: SessionSystem, **more: Any) -> str:
    """Start a child with files; return its key."""
    given = {"task": "read", "cleanup": "delete", "attachments": FILES, **more}
    answer = system.tools("agent:main:main").call("sessions_spawn", given)
    assert answer["status"] == "accepted", answer
    return str(answer["childSessionKey"])


@pytest.mark.clause("ATT-6")
@pytest.mark.parametrize("configured", [None, "own", "of all"])
def test_a_child_finds_the_files_that_it_was_handed(
    booth: Booth, tmp_path: Path, configured: str | None
) -> None:
    agents: dict[str, Any] = {"list": [{"id": "main"}]}
    if configured == "own":
        agents["list"] = [{"id": "main", "workspace": str(tmp_path / "own")}]
    if configured == "of all":
        agents["defaults"] = {"workspace": str(tmp_path / "of all")}
    looking = Looking()
    system = booth.start({"main": looking}, None, QUIET, ON, {"agents": agents})
    system.inbound(channel="x", chat_id="1", sender="ann", text="hi", agent_id="main", wait=10)

    spawned(system)
    wait_for(system, SpawnClosed)

    (_, own, none, _), (_, workspace, files, read) = looking.seen
    assert own == (None if configured is None else tmp_path.resolve() / configured)
    assert none == ()
    assert workspace is not None
    assert workspace == (own or workspace)
    assert read == [b"Buy milk.", b"\x89PNG\0"]
    assert [(file.name, file.mime_type, file.size) for file in files] == [
        ("notes.txt", "text/plain", 9),
        ("dot.png", None, 5),
    ]
    assert [file.sha256 for file in files] == [hashlib.sha256(content).hexdigest() for content in read]
    assert all(file.path is not None and file.path.is_relative_to(workspace) for file in files)
    with pytest.raises(AttributeError):
        files[0].name = "other"  # type: ignore[misc]


@pytest.mark.clause("ATT-6", "ATT-5")
def test_files_that_were_removed_are_named_and_have_no_path(booth: Booth) -> None:
    kept: list[Turn] = []

    def agent(turn: Turn) -> str:
        if turn.step == "message":
            kept.append(turn)
        return "done" if turn.step == "message" else turn.skip_word

    system = booth.start({"main": agent}, None, QUIET, ON)
    spawned(system)
    wait_for(system, AttachmentsRemoved)

    (turn,) = kept
    assert [(file.name, file.path) for file in turn.attachments] == [("notes.txt", None), ("dot.png", None)]


@pytest.mark.clause("ATT-6", "FORK-5")
def test_in_a_fork_they_are_named_and_have_no_path(booth: Booth) -> None:
    gate, seen = Gate(), list[tuple[str | None, ...]]()

    def agent(turn: Turn) -> str:
        if turn.step == "message":
            if not turn.forked:
                gate.stop(turn)
            seen.append(tuple(None if file.path is None else file.path.name for file in turn.attachments))
        return "done" if turn.step == "message" else turn.skip_word

    system = booth.start({"main": agent}, None, QUIET, ON)
    spawned(system)
    run = gate.reached().run_id
    with system.fork(run, at=system.log.head(), agents={"main": agent}) as fork:
        fork.carried_on(20)
    gate.open()
    wait_for(system, SpawnClosed)

    assert seen == [(None, None), ("notes.txt", "dot.png")]


@pytest.mark.clause("ATT-6")
def test_an_agent_on_asyncio_is_told_as_well(booth: Booth) -> None:
    seen: list[list[str]] = []

    async def agent(turn: Turn) -> str:
        if turn.step == "message":
            files = await asyncio.to_thread(lambda: turn.attachments)
            seen.append([file.name for file in files])
        return "done" if turn.step == "message" else turn.skip_word

    system = booth.start({"main": agent}, None, QUIET, ON)
    spawned(system)
    wait_for(system, SpawnClosed)

    assert seen == [["notes.txt", "dot.png"]]


@pytest.mark.clause("ATT-6")
def test_a_turn_that_is_of_no_system_has_no_files(booth: Booth) -> None:
    looking = Looking()
    system = booth.start({"main": looking}, None, QUIET)
    system.inbound(channel="x", chat_id="1", sender="ann", text="hi", wait=10)

    assert looking.seen == [("agent:main:main", None, (), [])]
