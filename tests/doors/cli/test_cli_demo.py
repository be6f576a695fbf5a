"""The demo: everything in it really happened, is told from the log, and what it suggests works."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from support.any_log import Logs
from support.doors.command_line import DemoLog, ran, ran_as_process, words


def test_the_demo_tells_a_whole_exchange_and_a_spawn_from_the_log(tmp_path: Path) -> None:
    done = ran_as_process("demo", "--store", tmp_path / "d.db")

    told = words(done.out)
    assert (done.exit_code, done.err) == (0, "")
    for turn in range(1, 6):
        assert any(f"turn {turn} of 5" in line for line in told)
    assert any("The ping-pong ended after 5 turns: the limit of turns was reached" in line for line in told)
    assert any("research → discord:lab · announces" in line for line in told)
    assert any("The exchange is over: announced." in line for line in told)
    assert any("spawns a sub-agent" in line for line in told)
    assert any(line == "Status: success" for line in told)
    assert any("Stats: runtime " in line for line in told)
    assert any("The spawn is over: announced." in line for line in told)


@pytest.mark.clause("ANN-2")
def test_the_announce_of_the_demo_reaches_the_channel_of_the_target_alone(demo_log: DemoLog) -> None:
    heard = [line for line in demo_log.value["heard"] if line.startswith("[")]

    assert [line for line in heard if "Lake crossing" in line] == [
        "[discord lab] Lake crossing: open on Saturday for up to 3.5 tonnes, wind 6 to 9 m/s. Asked by main."
    ]


def test_what_the_demo_tells_is_what_replay_reads_from_its_file(demo_log: DemoLog) -> None:
    for chapter in demo_log.value["replay"]:
        title = chapter.pop("title")
        again = ran("replay", chapter["id"], "--store", demo_log.path, "--json").json

        assert again == chapter
        chapter["title"] = title


def test_a_demo_that_was_called_by_its_path_says_how_a_shell_finds_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: whoever had copied README's first command was told to try what no shell found."""
    folder = Path(sys.executable).parent
    said = f'export PATH={shlex.quote(str(folder))}:"$PATH"'
    monkeypatch.setenv("PATH", str(tmp_path))
    assert said in words(ran("demo", "--store", tmp_path / "by path.db").out)
    monkeypatch.setenv("PATH", str(folder))
    assert said not in words(ran("demo", "--store", tmp_path / "by name.db").out)


def test_everything_the_demo_says_to_try_next_works(
    demo_log: DemoLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERSESSION_STORE", str(demo_log.copy(tmp_path)))
    export, *commands = demo_log.value["tryNext"]

    for command in commands:
        program, *tokens = shlex.split(command)
        done = ran(*tokens)
        assert (program, done.exit_code, done.err) == ("intersession", 0, ""), command
        assert done.out
    assert export == f"export INTERSESSION_STORE={demo_log.path}"
    assert len(commands) > 5


def test_the_demo_does_not_touch_a_file_that_is_there(demo_log: DemoLog) -> None:
    before = demo_log.path.read_bytes()

    done = ran("demo", "--store", demo_log.path)

    assert done.exit_code == 2
    assert "is there already" in done.err
    assert demo_log.path.read_bytes() == before


def test_without_a_store_the_demo_leaves_its_log_in_a_temporary_file(tmp_path: Path) -> None:
    done = ran_as_process("demo", "--json", variables={"TMPDIR": str(tmp_path)})

    path = Path(re.sub("^sqlite:///", "", done.json["store"]))
    assert path.is_file()
    assert tmp_path in path.parents


def test_a_loop_plays_the_demo_many_times_and_measures_the_process(tmp_path: Path) -> None:
    done = ran("demo", "--loop", "3", "--store", tmp_path / "loop.db", "--json")

    assert done.exit_code == 0
    said = done.json
    assert (said["rounds"], [held["round"] for held in said["measured"]]) == (3, [1, 2, 3])
    assert all(held["threads"] >= 1 for held in said["measured"])
    runs = ran("runs", "--limit", "100", "--store", tmp_path / "loop.db", "--json").json["runs"]
    assert sum(run["kind"] == "exchange" for run in runs) == 3
    assert all(run["state"] == "closed" for run in runs)


def test_a_loop_says_how_large_its_log_is_where_that_is_a_file(log_url: str, logs: Logs) -> None:
    done = ran("demo", "--loop", "1", "--store", log_url)

    assert done.exit_code == 0
    assert done.out.startswith("1 rounds in ")
    assert (" MiB in " in done.out.splitlines()[0]) == logs.are_files


def test_a_loop_below_zero_is_refused_before_a_log_is_made(tmp_path: Path) -> None:
    done = ran("demo", "--loop=-1", "--store", tmp_path / "loop.db")

    assert done.exit_code == 2
    assert "--loop: -1" in done.err
    assert not (tmp_path / "loop.db").exists()
