"""Files for a sub-agent: there before it starts, in no transcript and no log, gone when they are not needed any more."""

import base64
import hashlib
import io
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession import MemoryChannel, Message, Reply, SessionSystem, Turn
from intersession_actors.rules.prompt.instructions import told_by
from intersession_events.basics import crash_points
from intersession_events.facts import (
    AttachmentRemovalFailed,
    AttachmentsReady,
    AttachmentsRemoved,
    ChildArchived,
    RunQueued,
    RunStarted,
    SessionOpened,
    SpawnAccepted,
    SpawnClosed,
    ToolCallBlock,
)
from support import hostile
from support.any_log import written
from support.fakes import ManualClock
from support.running import Booth, Gate, all_said, closed_spawn, one, pass_time, recorded, spawn_of, wait_for

MAIN = "agent:main:main"
MINUTE = 60_000
ON: dict[str, Any] = {"tools": {"sessions_spawn": {"attachments": {"enabled": True}}}}
RETAINED: dict[str, Any] = {
    "tools": {"sessions_spawn": {"attachments": {"enabled": True, "retainOnSessionKeep": True}}}
}
CONTENT = "the words of the file"
FILE = {"name": "notes.txt", "content": CONTENT}
SHA256 = hashlib.sha256(CONTENT.encode()).hexdigest()


def worker(turn: Turn) -> str | Reply:
    return f"did {turn.message}" if turn.step == "message" else "It is done."


def started(booth: Booth, *configs: dict[str, Any], agent: Any = worker, **given: Any) -> SessionSystem:
    system = booth.start(
        {"main": agent, "ops": agent}, {"telegram": MemoryChannel()}, *(configs or (ON,)), **given
    )
    system.inbound(channel="telegram", chat_id="42", text="hi", sender="p", deliver=False)
    return system


def spawn(system: SessionSystem, *files: dict[str, Any], **given: Any) -> Any:
    arguments = {"task": "count", "attachments": list(files), **given}
    answer: Any = system.tools(MAIN).call("sessions_spawn", arguments)
    return answer


def tree(path: Path) -> set[str]:
    """Return the paths below a folder; the log and the mirror of its transcripts grow of themselves."""
    found = (each.relative_to(path) for each in path.rglob("*"))
    return {
        str(each) for each in found if not each.name.startswith("log.") and each.parts[0] != "transcripts"
    }


def place(root: Path, answer: dict[str, Any]) -> Path:
    directory: str = answer["attachments"]["relDir"]
    return root / "workspaces" / "main" / directory


@pytest.mark.clause("ATT-3", "ATT-5", "SPAWN-6")
def test_the_files_are_there_before_the_child_starts_and_the_answer_is_a_receipt(
    booth: Booth, beside_log: Path
) -> None:
    gate = Gate()
    reader = gate.saying("read")
    system = started(booth, agent=reader)
    picture = base64.b64encode(b"\0\1").decode()

    answer = spawn(
        system, FILE, {"name": "p.png", "content": picture, "encoding": "base64", "mimeType": "image/png"}
    )

    turn = gate.reached()
    directory = place(beside_log, answer)
    assert (directory / "notes.txt").read_text() == CONTENT
    assert (directory / "p.png").read_bytes() == b"\0\1"
    assert answer["attachments"] == {
        "count": 2,
        "totalBytes": len(CONTENT) + 2,
        "files": [
            {"name": "notes.txt", "bytes": len(CONTENT), "sha256": SHA256},
            {"name": "p.png", "bytes": 2, "sha256": hashlib.sha256(b"\0\1").hexdigest()},
        ],
        "relDir": f".openclaw/attachments/{directory.name}",
    }
    manifest = (directory / ".manifest.json").read_bytes()
    assert msgspec.json.decode(manifest) == answer["attachments"]
    items = list(system.log.all())
    ready = next(item for item in items if isinstance(item.event, AttachmentsReady))
    assert ready.event == AttachmentsReady(
        directory=directory.name,
        count=2,
        total_bytes=len(CONTENT) + 2,
        manifest_sha256=hashlib.sha256(manifest).hexdigest(),
    )
    position = {type(item.event): item.position for item in items}
    assert position[SpawnAccepted] < position[AttachmentsReady] < position[RunStarted]
    (accepted,) = recorded(system, SpawnAccepted)
    assert accepted.attachments is not None
    assert (accepted.attachments.root, accepted.attachments.directory) == (
        os.path.realpath(beside_log / "workspaces" / "main"),
        directory.name,
    )
    gate.open()
    assert turn.session_key == answer["childSessionKey"]


@pytest.mark.clause("ATT-3", "SPAWN-1")
def test_the_child_is_told_of_them_and_that_they_are_untrusted(booth: Booth) -> None:
    system = started(booth)

    answer = spawn(system, FILE, attachAs={"mountPath": "/mnt/in"})

    queued = next(event for event in recorded(system, RunQueued) if event.run_id == answer["runId"])
    for told in ("1 files", f"{len(CONTENT)} bytes", answer["attachments"]["relDir"], "/mnt/in", "untrusted"):
        assert told in told_by(queued.instructions, queued.run_id, None, str)
    (accepted,) = recorded(system, SpawnAccepted)
    assert accepted.mount_path == "/mnt/in"


@pytest.mark.clause("ATT-4")
def test_the_content_is_in_no_transcript_and_nowhere_in_the_log(booth: Booth, beside_log: Path) -> None:
    canary = "canary-4711-in-a-file"
    asked: list[Any] = []

    def requester(turn: Turn) -> str | Reply:
        if ":subagent:" not in turn.session_key and turn.message == "go":
            file = {"name": "notes.txt", "content": canary}
            asked.append(turn.tools.call("sessions_spawn", {"task": "t", "attachments": [file]}))
            encoded = {
                "name": "x",
                "content": base64.b64encode(canary.encode()).decode() + "!",
                "encoding": "base64",
            }
            asked.append(turn.tools.call("sessions_spawn", {"task": "t", "attachments": [encoded]}))
        return worker(turn)

    system = started(booth, ON, {"transcripts": {"mirror": True}}, agent=requester)
    system.inbound(channel="telegram", chat_id="42", text="go", sender="p", wait=20)
    closed_spawn(system, asked[0]["runId"])

    calls = [
        block
        for event in all_said(system)
        if not isinstance(event.message.content, str)
        for block in event.message.content
        if isinstance(block, ToolCallBlock)
    ]
    (shown,) = msgspec.json.decode(calls[0].arguments)["attachments"]
    assert shown == {
        "name": "notes.txt",
        "content": {
            "omitted": True,
            "bytes": len(canary),
            "sha256": hashlib.sha256(canary.encode()).hexdigest(),
        },
    }
    assert [answer.get("code") for answer in asked] == [None, "invalid_base64"]
    system.close()
    transcripts = [found.read_bytes() for found in beside_log.glob("log*.transcripts/*.jsonl")]
    assert transcripts
    kept = written(booth.url) + b"".join(transcripts)
    assert canary.encode() not in kept
    assert base64.b64encode(canary.encode()) not in kept


@pytest.mark.clause("ATT-4")
def test_neither_is_it_in_what_an_agent_says_it_called(booth: Booth) -> None:
    call = ToolCallBlock(
        id="c",
        name="sessions_spawn",
        arguments='{"task":"t","attachments":[{"name":"a","content":"canary-0815"}]}',
    )

    def agent(_: Turn) -> Reply:
        return Reply("done", messages=(Message(id="", role="assistant", content=(call,), timestamp=0),))

    system = started(booth, agent=agent)
    system.inbound(channel="telegram", chat_id="42", text="go", sender="p", wait=20)
    system.close()

    assert b"canary-0815" not in written(booth.url)
    assert b"sessions_spawn" in written(booth.url)


@pytest.mark.clause("ATT-1")
def test_they_are_off_unless_they_are_turned_on(booth: Booth, beside_log: Path) -> None:
    system = started(booth, {})

    answer = spawn(system, FILE)

    assert (answer["status"], answer["code"]) == ("forbidden", "forbidden")
    assert "tools.sessions_spawn.attachments.enabled" in answer["error"]
    assert not (beside_log / "workspaces").exists()


def hostile_files(row: dict[str, Any]) -> list[dict[str, Any]]:
    if row["field"] == "attachments":
        return [{"name": f"{number}", "content": "x"} for number in range(51)]
    given = hostile.given(row)
    match row["field"]:
        case "attachments[].content (base64)":
            return [{"name": "a", "content": given, "encoding": "base64"}]
        case "attachments[].encoding":
            return [{"name": "a", "content": "x", "encoding": given}]
        case _:
            return [{"name": name, "content": "x"} for name in given.split(" and ")]


@pytest.mark.clause("ATT-2", "X5", "X9")
@pytest.mark.parametrize(
    "row",
    [
        row
        for row in hostile.rows("A")
        if row["field"].startswith("attachments") and " zip" not in row["field"]
    ],
    ids=hostile.row_id,
)
def test_the_hostile_rows_at_the_tool(booth: Booth, beside_log: Path, row: dict[str, Any]) -> None:
    system = started(booth)
    before = tree(beside_log)

    answer = spawn(system, {"name": "fine.txt", "content": "x"}, *hostile_files(row))

    if row["expect"].startswith("accepted"):
        assert answer["status"] == "accepted"
        assert (place(beside_log, answer) / hostile.given(row)).read_text() == "x"
    else:
        assert (answer["status"], answer["code"]) == ("error", row["expect"])
        assert tree(beside_log) == before
        assert recorded(system, SpawnAccepted) == []


@pytest.mark.clause("ATT-3")
def test_an_archive_is_bytes_like_any_other_and_is_never_unpacked(booth: Booth, beside_log: Path) -> None:
    """A34."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../evil", b"\0" * (50 << 20))
    system = started(booth, RETAINED)

    answer = spawn(
        system,
        {"name": "bomb.zip", "content": base64.b64encode(packed.getvalue()).decode(), "encoding": "base64"},
    )

    assert {path.name for path in place(beside_log, answer).iterdir()} == {"bomb.zip", ".manifest.json"}
    assert (place(beside_log, answer) / "bomb.zip").read_bytes() == packed.getvalue()


@pytest.mark.clause("ATT-3", "X5")
def test_a_link_in_the_workspace_refuses_the_spawn_and_leaves_nothing(booth: Booth, beside_log: Path) -> None:
    """A35."""
    outside = beside_log / "outside"
    outside.mkdir()
    workspace = beside_log / "workspaces" / "main"
    (workspace / ".openclaw").mkdir(parents=True)
    (workspace / ".openclaw" / "attachments").symlink_to(outside)
    system = started(booth)

    answer = spawn(system, FILE)

    assert (answer["status"], answer["code"]) == ("error", "unsafe_path")
    assert list(outside.iterdir()) == []
    assert recorded(system, SpawnAccepted) == []
    assert [event.key for event in recorded(system, SessionOpened)] == [MAIN]


@pytest.mark.clause("ATT-3")
def test_files_that_are_not_as_they_were_when_the_child_should_start_end_it_before_it_begins(
    booth: Booth, beside_log: Path
) -> None:
    system = started(booth)
    workspace = beside_log / "workspaces" / "main" / ".openclaw" / "attachments"

    def meddle(point: str) -> None:
        if point == "P2":
            (staged,) = (workspace / ".staging").iterdir()
            (staged / "notes.txt").write_text("other words")

    disarm = crash_points.arm(meddle)
    try:
        answer = spawn(system, FILE, idempotencyKey="k")
    finally:
        disarm()

    assert (answer["status"], answer["code"]) == ("error", "unsafe_path")
    assert spawn(system, FILE, idempotencyKey="k") == answer
    (closed,) = recorded(system, SpawnClosed)
    assert (closed.reason, closed.code) == ("not_started", "unsafe_path")
    wait_for(system, AttachmentsRemoved)
    assert [path.name for path in workspace.iterdir()] == [".staging"]
    assert [event.key for event in recorded(system, SessionOpened)] == [MAIN]
    assert system.service.flows.running_children(MAIN) == 0


@pytest.mark.clause("ATT-3", "SPAWN-6")
def test_a_spawn_whose_files_the_disk_did_not_take_is_over_and_does_not_say_try_again(
    booth: Booth, beside_log: Path
) -> None:
    system = started(booth)
    staging = beside_log / "workspaces" / "main" / ".openclaw" / "attachments" / ".staging"

    def loses(point: str) -> None:
        if point == "P2":
            shutil.rmtree(next(staging.iterdir()))

    disarm = crash_points.arm(loses)
    try:
        answer = spawn(system, FILE, idempotencyKey="k")
    finally:
        disarm()

    assert (answer["status"], answer["code"]) == ("error", "not_started")
    assert answer["error"].endswith("this spawn is over, begin another with a key of its own")
    assert spawn(system, FILE, idempotencyKey="k") == answer
    assert spawn(system, FILE, idempotencyKey="another")["status"] == "accepted"


@pytest.mark.clause("ATT-5")
@pytest.mark.parametrize(("config", "cleanup"), [(ON, "keep"), (ON, "delete"), (RETAINED, "delete")])
def test_the_files_go_when_the_announce_is_final(
    booth: Booth, beside_log: Path, config: dict[str, Any], cleanup: str
) -> None:
    system = started(booth, config)

    answer = spawn(system, FILE, cleanup=cleanup)
    closed_spawn(system, answer["runId"])

    removed = wait_for(system, AttachmentsRemoved)
    assert removed.directory == place(beside_log, answer).name
    assert not place(beside_log, answer).exists()


@pytest.mark.clause("ATT-5")
def test_files_that_are_retained_go_when_the_child_is_archived(booth: Booth, beside_log: Path) -> None:
    clock = ManualClock()
    system = started(booth, RETAINED, clock=clock)
    answer = spawn(system, FILE)
    closed_spawn(system, answer["runId"])
    assert (place(beside_log, answer) / "notes.txt").exists()
    assert recorded(system, AttachmentsRemoved) == []

    pass_time(system, clock, 61 * MINUTE)

    wait_for(system, ChildArchived)
    wait_for(system, AttachmentsRemoved)
    assert not place(beside_log, answer).exists()


@pytest.mark.clause("ATT-5")
def test_they_go_too_when_the_operator_deletes_the_child(booth: Booth, beside_log: Path) -> None:
    system = started(booth, RETAINED)
    answer = spawn(system, FILE)
    closed_spawn(system, answer["runId"])

    system.gateway.call("sessions.delete", {"key": answer["childSessionKey"]})

    assert wait_for(system, ChildArchived).reason == "deleted"
    wait_for(system, AttachmentsRemoved)
    assert not place(beside_log, answer).exists()


@pytest.mark.clause("ATT-5", "X5")
def test_a_directory_that_became_a_link_is_removed_and_its_target_is_not(
    booth: Booth, beside_log: Path
) -> None:
    """A37."""
    outside = beside_log / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    gate = Gate()
    agent = gate.saying("done")
    system = started(booth, agent=agent)
    answer = spawn(system, FILE)
    gate.reached()
    directory = place(beside_log, answer)
    directory.rename(beside_log / "aside")
    directory.symlink_to(outside)
    gate.open()

    closed_spawn(system, answer["runId"])

    wait_for(system, AttachmentsRemoved)
    assert not directory.is_symlink()
    assert (outside / "precious").read_text() == "precious"


@pytest.mark.clause("ATT-5")
def test_a_removal_that_fails_is_an_event_and_is_not_tried_again(booth: Booth, beside_log: Path) -> None:
    gate = Gate()
    agent = gate.saying("done")
    system = started(booth, agent=agent)
    answer = spawn(system, FILE)
    gate.reached()
    openclaw = beside_log / "workspaces" / "main" / ".openclaw"
    openclaw.rename(beside_log / "aside")
    openclaw.symlink_to(beside_log / "aside")
    gate.open()

    events = closed_spawn(system, answer["runId"])

    failed = wait_for(system, AttachmentRemovalFailed)
    assert failed.error
    assert one(events, SpawnClosed).reason == "announced"
    system.close()
    again = started(booth)
    assert recorded(again, AttachmentRemovalFailed) == [failed]
    assert recorded(again, AttachmentsRemoved) == []


@pytest.mark.clause("ATT-3", "SPAWN-6")
def test_the_same_key_gives_the_same_child_and_receipt_and_other_content_is_a_conflict(booth: Booth) -> None:
    system = started(booth, RETAINED)

    first = spawn(system, FILE, idempotencyKey="k")
    again = spawn(system, FILE, idempotencyKey="k")
    other = spawn(system, FILE | {"content": "other words"}, idempotencyKey="k")

    assert first["status"] == "accepted"
    assert again == first
    assert other["code"] == "idempotency_conflict"
    assert len(recorded(system, SpawnAccepted)) == 1


@pytest.mark.clause("ATT-3")
@pytest.mark.sqlite("a log in memory")
def test_a_log_in_memory_has_no_workspaces_unless_they_are_configured(tmp_path: Path) -> None:
    with SessionSystem(":memory:", agents={"main": worker}, config=ON) as system:
        refused = spawn(system, FILE)
    with SessionSystem(
        ":memory:",
        agents={"main": worker},
        config=ON | {"agents": {"defaults": {"workspace": str(tmp_path / "w")}}},
    ) as system:
        answer = spawn(system, FILE)
        (accepted,) = recorded(system, SpawnAccepted)

    assert refused["code"] == "not_supported"
    assert "agents.defaults.workspace" in refused["error"]
    assert answer["status"] == "accepted"
    assert accepted.attachments is not None
    assert accepted.attachments.root == os.path.realpath(tmp_path / "w")


@pytest.mark.clause("ATT-3")
def test_each_agent_may_have_a_workspace_of_its_own(booth: Booth, beside_log: Path) -> None:
    agents = {
        "list": [
            {"id": "main", "subagents": {"allowAgents": ["ops"]}},
            {"id": "ops", "workspace": str(beside_log / "of ops")},
        ]
    }
    system = started(booth, RETAINED, {"agents": agents})

    answer = spawn(system, FILE, agentId="ops")

    assert (beside_log / "of ops" / answer["attachments"]["relDir"] / "notes.txt").read_text() == CONTENT


@pytest.mark.clause("ATT-3")
def test_what_was_staged_for_a_spawn_that_never_was_is_swept_at_the_next_start(
    booth: Booth, beside_log: Path
) -> None:
    system = started(booth, RETAINED)
    answer = spawn(system, FILE)
    staging = beside_log / "workspaces" / "main" / ".openclaw" / "attachments" / ".staging"
    left = staging / f"{system.log.log_id}.left"
    left.mkdir()
    (left / "notes.txt").write_text("x")
    system.close()

    started(booth, RETAINED)

    assert list(staging.iterdir()) == []
    assert (place(beside_log, answer) / "notes.txt").exists()


@pytest.mark.clause("SPAWN-1")
def test_a_spawn_with_files_waits_for_nothing_else(booth: Booth) -> None:
    system = started(booth)
    answer = spawn(system, FILE)

    assert (
        system.gateway.call("agent.wait", {"runId": answer["runId"], "timeoutMs": 20_000})["status"] == "ok"
    )
    names = [type(event).__name__ for event in closed_spawn(system, answer["runId"])]
    assert names[:3] == ["SpawnAccepted", "AttachmentsReady", "ChildEnded"]
    assert spawn_of(system, answer["runId"]).startswith("spawn:")
