"""`intersession migrate` moves a host's log, and what it did can be read there as before."""

import random
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from intersession_events.basics.errors import LogError
from intersession_events.log.sql import Row
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.sqlite.log import SqliteLog
from support.doors.command_line import DemoLog, environment, ran, ran_as_process
from support.log_drafts import anywhere, said
from support.processes.forked import ForkedCommand
from support.running import WAIT


def test_a_host_goes_on_in_the_file_that_its_log_was_moved_to(tmp_path: Path) -> None:
    """Issue 13: the same store either way; PostgreSQL is tried by `pytest -m postgres`."""
    source, target = tmp_path / "s.db", tmp_path / "moved.db"
    with SessionSystem(source, agents={"main": echo("heard: ")}) as system:
        system.inbound(channel="telegram", chat_id="1", sender="ada", text="one", wait=WAIT)
        refused = ran("migrate", source, target, "--json")
        log_id = system.log.log_id
    assert (refused.exit_code, refused.json["code"]) == (3, "store_locked")

    done = ran("migrate", source, target, "--json").json

    assert (done["logId"], done["from"], done["to"]) == (log_id, str(source), str(target))
    assert done["events"] == done["position"] > 0
    assert "session_list" in done["views"]
    with SessionSystem(target, agents={"main": echo("heard: ")}) as system:
        system.inbound(channel="telegram", chat_id="1", sender="ada", text="two", wait=WAIT)
    assert "heard: one" in (told := ran("history", "main", "--store", target).out)
    assert "heard: two" in told
    assert ran("verify", "--store", target).exit_code == 0


def test_people_are_told_what_was_moved_and_that_there_are_two_now(demo_log: DemoLog, tmp_path: Path) -> None:
    source = demo_log.copy(tmp_path)
    told = ran("migrate", source, tmp_path / "moved.db").out

    assert told.startswith(f"moved: {demo_log.value['position']} events up to position")
    assert "Write to one of the two" in told


@pytest.mark.parametrize(
    ("source", "target", "refusal"),
    [
        ("none.db", "to.db", (3, "no_store")),
        ("from.db", "there.db", (1, "migration_failed")),
        ("from.db", "postgresql://postgres:s3cr3t@127.0.0.1:1/postgres", (3, "unavailable")),
        ("from.db", "mysql://somebody@host/base", (3, "no_store")),
        ("from.db", ":memory:", (3, "no_store")),
    ],
)
def test_what_can_not_be_moved_is_refused(
    demo_log: DemoLog, tmp_path: Path, source: str, target: str, refusal: tuple[int, str]
) -> None:
    demo_log.copy(tmp_path).rename(tmp_path / "from.db")
    (tmp_path / "there.db").write_text("mine", encoding="utf-8")

    refused = ran("migrate", tmp_path / source, target if ":" in target else tmp_path / target, "--json")

    assert (refused.exit_code, refused.json["code"]) == refusal
    assert "s3cr3t" not in refused.out + refused.err


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of more than two pages."""
    path = tmp_path_factory.mktemp("long") / "log.db"
    with SqliteLog(path) as log:
        for number in range(25):
            log.append_now([anywhere(f"s{number}", *(said(f"{number}-{n}") for n in range(100)))])
    return path


def rows_in(url: str) -> list[Row]:
    with PostgresLog(url, read_only=True) if ":" in url else SqliteLog(url, read_only=True) as log:
        return list(log.rows(limit=100_000))


@pytest.fixture(
    params=[
        pytest.param("file", marks=pytest.mark.nightly),  # five processes, each an interpreter's start
        pytest.param("postgres", marks=pytest.mark.postgres),
    ]
)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "moved.db") if request.param == "file" else request.getfixturevalue("postgres_url")


@pytest.mark.clause("M1", "M2", "M3", "O6")
def test_a_move_that_is_killed_goes_on_when_it_is_run_again(
    long_log: Path, tmp_path: Path, target: str
) -> None:
    source = shutil.copy(long_log, tmp_path / "log.db")
    for point in ("M1:2", "M1:1", "M2:1", "M3:1"):
        killed = ran_as_process(
            "migrate", source, target, "--json", variables={"INTERSESSION_CRASH_AT": point}
        )
        assert (killed.exit_code, killed.out) == (-signal.SIGKILL, "")
        if point != "M3:1":
            with pytest.raises(LogError):
                rows_in(target)
    done = ran_as_process("migrate", source, target, "--json").json

    assert (done["ok"], done["events"], done["resumedAt"]) == (True, 2500, 2500)
    assert rows_in(target) == rows_in(str(source))


@pytest.mark.nightly
@pytest.mark.postgres
@pytest.mark.timeout(1_800)
def test_a_move_that_is_killed_at_any_moment_ends_with_the_same_log(
    tmp_path: Path, postgres_url: str
) -> None:
    source, chance = tmp_path / "log.db", random.Random(13)  # noqa: S311 - when to kill, not whom
    with SqliteLog(source) as log:
        for number in range(200):
            log.append_now([anywhere(f"s{number}", *(said(f"{number}-{n}") for n in range(100)))])
    before = rows_in(str(source))
    place, kills = str(source), 0
    for target in (postgres_url, str(tmp_path / "back.db")):
        while True:
            child = ForkedCommand(["migrate", place, target, "--json"], environment())
            until = time.monotonic() + chance.uniform(0.05, 2 + kills / 20)
            while child.poll() is None and time.monotonic() < until:
                threading.Event().wait(0.01)
            child.kill()
            child.communicate(60)
            kills += child.returncode == -signal.SIGKILL
            if child.returncode == 0:
                break
            assert child.returncode == -signal.SIGKILL
        assert rows_in(target) == before
        place = target
    assert kills > 10


@pytest.mark.postgres
def test_a_host_moves_to_postgresql_and_back_with_its_runs_proofs_and_forks(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 13: as an operator does it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    source, back = str(tmp_path / "s.db"), str(tmp_path / "back.db")

    def speak(place: str, text: str) -> None:
        with SessionSystem(place, agents={"main": echo("heard: ")}) as system:
            system.inbound(channel="telegram", chat_id="1", sender="ada", text=text, wait=WAIT)

    def told(place: str) -> list[object]:
        verified = ran("verify", "--store", place, "--json")
        assert (verified.exit_code, verified.json["ok"]) == (0, True)
        runs = ran("runs", "--store", place, "--json").json["runs"]
        return [runs, ran("history", "main", "--store", place, "--json").json["messages"]]

    def forks(place: str) -> list[object]:
        listed: list[object] = ran("forks", "--store", place, "--json").json["forks"]
        return listed

    speak(source, "one")
    assert ran("checkpoint", "--store", source).exit_code == 0
    run = told(source)[0][0]["runId"]  # type: ignore[index]  # of the answer in JSON
    assert ran("fork", run, "--at", f"{run}@start", "--store", source, "--no-run").exit_code == 0
    (fork,) = (tmp_path / "s.db.forks").glob("*.db")
    before = told(source)

    moved = ran("migrate", source, postgres_url, "--json").json
    assert (bool(moved["views"]), moved["forks"], moved["forksLeft"]) == (True, 1, {})
    assert told(postgres_url) == before
    assert forks(postgres_url) == forks(source) != []
    speak(postgres_url, "two")
    assert ran("fork", run, "--at", f"{run}@start", "--store", postgres_url, "--no-run").exit_code == 0
    assert "  2 forks copied along" in ran("migrate", postgres_url, back).out
    assert forks(back) == forks(postgres_url)
    assert ran("migrate", postgres_url, back, "--json").json["forks"] == 0  # they are there
    speak(back, "three")

    said_now = ran("history", "main", "--store", back).out
    assert [f"heard: {text}" in said_now for text in ("one", "two", "three")] == [True] * 3
    assert ran("verify", "--store", back).exit_code == 0
    # The one beside the old log is as it was, and is known for a part of the log wherever that is.
    for place in (postgres_url, back):
        assert ran("verify", "--store", fork, "--source", place).exit_code == 0
