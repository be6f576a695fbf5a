"""Forks of runs that spawn what needs something from outside: a thread of a channel, files, another runtime (FORK-4, FORK-5)."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_actors.hindsight.forking.carrying import carry_on
from intersession_actors.outside.channels.channels import ThreadWanted
from intersession_events.copies.forks.files import remove_fork
from intersession_events.facts import (
    AttachmentsReady,
    DeliveryWithheld,
    ForkEdit,
    SpawnAccepted,
    ThreadBound,
    ThreadOpened,
)
from support.running import SEES_ALL, WAIT, merged, recorded, wait_for

CONFIG = merged(
    SEES_ALL,
    {
        "agents": {"defaults": {"subagents": {"maxChildrenPerAgent": 9}}},
        "tools": {"sessions_spawn": {"attachments": {"enabled": True, "retainOnSessionKeep": True}}},
    },
)
SPAWNS: tuple[dict[str, object], ...] = (
    {"task": "talk there", "thread": True, "idempotencyKey": "thread"},
    {"task": "read it", "attachments": [{"name": "notes.txt", "content": "words"}]},
    {"task": "elsewhere", "runtime": "acp"},
)


class Threads(MemoryChannel):
    """A channel that opens threads, once `may_open` is set."""

    def __init__(self) -> None:
        super().__init__(idempotent=True)
        self.may_open = threading.Event()
        self.wanted: list[ThreadWanted] = []
        self.threads = self._open

    def _open(self, wanted: ThreadWanted) -> str:
        self.wanted.append(wanted)
        assert self.may_open.wait(WAIT)
        return f"t{len(self.wanted)}"


def agent(turn: Turn) -> str:
    """Spawn one thing after the other, and say how it was answered; as a child, do what it is told."""
    if turn.step != "message":
        return "It is done."
    if turn.message != "go":
        return f"did {turn.message}"
    return " ".join(str(turn.tools.call("sessions_spawn", one)["status"]) for one in SPAWNS)


class Source(NamedTuple):
    """A log that is open, with a run that spawned three children."""

    system: SessionSystem
    run: str
    channel: Threads


def opened(path: Path) -> tuple[SessionSystem, Threads]:
    channel = Threads()
    system = SessionSystem(path, agents={"main": agent}, channels={"x": channel}, config=CONFIG)
    system.register_runtime("acp", agent)
    return system, channel


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    system, channel = opened(tmp_path_factory.mktemp("spawns") / "log.db")
    with system:
        channel.may_open.set()
        said = system.inbound(channel="x", chat_id="1", text="go", sender="ann", wait=WAIT)
        assert said["reply"] == "accepted accepted accepted"
        carry_on(system.service, "", timeout=WAIT)
        yield Source(system, str(said["runId"]), channel)


def spawned(system: SessionSystem, task: str) -> SpawnAccepted:
    return next(one for one in recorded(system, SpawnAccepted) if one.task == task)


@pytest.mark.clause("FORK-4", "FORK-5", "FORK-7", "SEAL-2", "SPAWN-12", "ATT-4", "DIFF-2")
def test_what_a_spawn_got_from_outside_is_withheld_in_a_fork_and_all_else_is_as_it_was(
    source: Source,
) -> None:
    system, asked = source.system, len(source.channel.wanted)
    assert system.debug.replay()["same"]
    accepted = [one.position for one in system.log.all() if isinstance(one.event, SpawnAccepted)]
    places: list[int | str] = ["start", *accepted[1:]]
    for at in places:
        with system.fork(source.run, at=at, agents={"*": "recorded"}) as fork:
            carried = fork.carried_on(WAIT)
            assert (carried.state, carried.divergence) == ("ended", None), at
            carry_on(fork.service, "", timeout=WAIT)
            diff = system.debug.diff(source.run, fork.log.log_id)
            assert [row for row in diff["turns"] if row["kind"] != "same"] == [], at
            assert (replayed := fork.debug.replay())["same"], (at, replayed)
            if at == "start":
                (ready,) = recorded(fork, AttachmentsReady)
                assert (ready.count, ready.withheld) == (1, True)
                (thread,) = recorded(fork, ThreadOpened)
                assert thread.withheld
                (bound,) = recorded(fork, ThreadBound)
                assert bound.route == thread.route
                assert recorded(fork, DeliveryWithheld)
    assert len(source.channel.wanted) == asked


@pytest.mark.clause("FORK-4", "ATT-5")
def test_another_task_for_a_child_with_files_leaves_the_files_of_the_source_alone(source: Source) -> None:
    accepted = spawned(source.system, "read it")
    assert accepted.attachments is not None
    files = Path(accepted.attachments.root) / ".openclaw" / "attachments" / accepted.attachments.directory
    edits = [ForkEdit(kind="message", value="read it twice")]
    with source.system.fork(accepted.spawn_id, at="start", edits=edits, agents={"*": agent}) as fork:
        assert fork.carried_on(WAIT).outcome.end == "withheld"
        fork.gateway.call("sessions.delete", {"key": spawned(fork, "read it twice").child})
        carry_on(fork.service, "", timeout=WAIT)
    assert (files / "notes.txt").read_text() == "words"


@pytest.mark.clause("FORK-9", "ATT-3")
def test_the_files_of_a_fork_lie_with_it_and_go_with_it(source: Source) -> None:
    """Each fork has workspaces of its own, and what stands in them is deleted with it."""
    accepted = spawned(source.system, "read it")
    run = str(accepted.requester_run_id)
    paths = []
    for _ in range(2):
        with source.system.fork(run, at="start", agents={"*": agent}) as fork:
            fork.carried_on(WAIT)
            carry_on(fork.service, "", timeout=WAIT)
            files = spawned(fork, "read it").attachments
            assert files is not None
            assert Path(files.root).is_relative_to(f"{fork.log.place}.workspaces")
            assert (Path(files.root) / ".openclaw" / "attachments").is_dir()
            paths.append(Path(fork.log.place))
    for path in paths:
        remove_fork(path)
        assert [one.name for one in path.parent.iterdir() if one.name.startswith(path.stem)] == []
    assert not (paths[0].parent / "workspaces").exists()


@pytest.mark.clause("FORK-5", "SPAWN-12")
def test_a_spawn_that_was_cut_while_its_thread_was_asked_for_goes_on_without_one(tmp_path: Path) -> None:
    system, channel = opened(tmp_path / "log.db")
    with system:
        run = str(system.inbound(channel="x", chat_id="1", text="go", sender="ann")["runId"])
        accepted = wait_for(system, SpawnAccepted)
        with system.fork(accepted.spawn_id, at="head", agents={"*": agent}) as fork:
            assert fork.carried_on(WAIT).outcome.end == "withheld"
            assert recorded(fork, ThreadOpened)[0].withheld
        channel.may_open.set()
        assert system.gateway.call("agent.wait", {"runId": run})["status"] == "ok"


@pytest.mark.clause("FORK-5", "FORK-7", "SPAWN-12")
def test_a_channel_that_has_no_threads_has_none_in_a_fork(tmp_path: Path) -> None:
    def asks(turn: Turn) -> str:
        return str(turn.tools.call("sessions_spawn", SPAWNS[0])["status"])

    with SessionSystem(
        tmp_path / "log.db", agents={"main": asks}, channels={"x": MemoryChannel()}, config=CONFIG
    ) as system:
        said = system.inbound(channel="x", chat_id="1", text="go", sender="ann", wait=WAIT)
        assert said["reply"] == "error"
        for agents in ({"*": "recorded"}, {"*": "main"}):
            with system.fork(str(said["runId"]), at="start", agents=agents) as fork:
                carried = fork.carried_on(WAIT)
                assert (carried.state, carried.outcome.announced) == ("ended", "error")
