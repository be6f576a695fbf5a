"""`send` is the host of the log for its time: it answers, follows, and leaves the rest to the next host."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from support.doors.command_line import DemoLog, environment, hear_ctrl_c, process, ran, ran_as_process

DEMO = "intersession.cli.commands.demo_agents:host"

AGENTS = """
import sys
import threading
from intersession import Reply, SessionSystem, echo


def silent(turn):
    return Reply.skip()


def broken(turn):
    raise ValueError("out of \\x1b[31morder")


def stuck(turn):
    print("stuck", flush=True)
    threading.Event().wait()


def talking(turn):
    if turn.step != "message":
        yield Reply.skip()
        return
    yield "Good "
    sys.stdin.readline()  # once its first words were seen
    yield "morning."


talkers = {"main": talking}
agents = {"main": echo("main: "), "research": echo("research: ")}
alone = {"research": echo("research: ")}
failing = {"main": broken}
stuck_agents = {"main": stuck}
number = 7


def host(store):
    return SessionSystem(store, agents=agents)


def nothing(store):
    return None
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory, with a module of agents in it."""
    (tmp_path / f"agents_{os.getpid()}.py").write_text(AGENTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def named(name: str) -> str:
    return f"agents_{os.getpid()}:{name}"


def test_send_follows_an_exchange_to_its_end(demo_log: DemoLog, tmp_path: Path) -> None:
    store = demo_log.copy(tmp_path)

    done = ran(
        "send", "And on Sunday?", "--as", "main", "--agent", "research", "--agents", DEMO, "--store", store
    )

    assert (done.exit_code, done.err) == (0, "")
    assert "main → research · asks" in done.out
    assert "main → research · turn 5 of 5" in done.out
    assert "research → discord:lab · announces" in done.out
    assert "The exchange is over: announced." in done.out
    assert "\nok  run " in done.out


def test_in_json_send_gives_the_tools_answer_and_what_came_of_it(demo_log: DemoLog, tmp_path: Path) -> None:
    store = demo_log.copy(tmp_path)

    value = ran("send", "And now?", "--agent", "research", "--agents", DEMO, "--store", store, "--json").json

    assert (value["status"], value["sessionKey"]) == ("ok", "agent:research:main")
    assert value["reply"] == "Yes: the ferry runs from 07:00, and the bridge is open."
    assert (value["exchange"]["loopEnd"], value["exchange"]["closeReason"]) == ("no_requester", "announced")
    assert [beat["kind"] for beat in value["beats"]] == ["said", "said", "note", "said", "note", "end"]
    assert "pending" not in value


@pytest.mark.clause("SEND-1")
def test_the_target_is_named_by_key_label_or_agent(folder: Path) -> None:
    store = folder / "s.db"
    for target in (("--agent", "research"), ("--to", "agent:research:main")):
        value = ran("send", "hi", *target, "--agents", named("agents"), "--store", store, "--json").json
        assert value["reply"] == "research: hi"

    wrong = ran("send", "hi", "--label", "nobody", "--agents", named("agents"), "--store", store, "--json")
    none = ran("send", "hi", "--agents", named("agents"), "--store", store, "--json")
    both = ran(
        "send",
        "hi",
        "--to",
        "main",
        "--agent",
        "main",
        "--agents",
        named("agents"),
        "--store",
        store,
        "--json",
    )

    assert (wrong.exit_code, wrong.json["code"]) == (1, "not_visible")
    assert (none.exit_code, none.json["code"]) == (2, "usage")
    assert (both.exit_code, both.json["code"]) == (1, "invalid_request")


def test_who_names_no_session_is_told_the_options_that_do(folder: Path) -> None:
    """It was told the names of the tool's fields, and only where a gateway was asked."""
    sent = ran("send", "hello", "--store", folder / "log.db", "--timeout", 0)

    assert (sent.exit_code, sent.err.strip()) == (
        2,
        "error (usage): say which session: give --to, --label or --agent",
    )


def test_a_function_that_makes_a_system_can_be_the_host(folder: Path) -> None:
    done = ran(
        "send", "hi", "--agent", "main", "--agents", named("host"), "--store", folder / "s.db", "--json"
    )

    assert done.json["reply"] == "main: hi"


@pytest.mark.parametrize("spec", ["nothing", "number", "missing", "", "agents.x"])
def test_what_is_neither_agents_nor_a_host_is_wrong_usage(folder: Path, spec: str) -> None:
    done = ran("send", "hi", "--agent", "main", "--agents", named(spec), "--store", folder / "s.db", "--json")

    assert (done.exit_code, done.json["code"]) == (2, "usage")


def test_a_module_that_can_not_be_imported_is_wrong_usage(folder: Path) -> None:
    (folder / "wrong_here.py").write_text("1 / 0\n", encoding="utf-8")

    for spec in ("wrong_here:agents", "not_here_at_all:agents", "nothing"):
        done = ran("send", "hi", "--agent", "main", "--agents", spec, "--store", folder / "s.db", "--json")
        assert (done.exit_code, done.json["code"]) == (2, "usage")
        assert f"--agents: {spec!r}: it " in done.json["error"]


def test_a_run_that_fails_is_exit_code_1_and_its_words_are_inert(folder: Path) -> None:
    done = ran("send", "hi", "--agent", "main", "--agents", named("failing"), "--store", folder / "s.db")

    assert done.exit_code == 1
    assert r"main failed: backend: ValueError: out of \x1b[31morder" in done.out
    assert "\x1b" not in done.out + done.err


@pytest.mark.ci
@pytest.mark.clause("KEY-9")
def test_what_nobody_here_can_answer_waits_for_the_next_host(folder: Path) -> None:
    store, config = folder / "s.db", folder / "c.json5"
    config.write_text("{agents: {list: [{id: 'main', default: true}, {id: 'research'}]}}", encoding="utf-8")
    both = ("--agents", named("alone"), "--config", config, "--store", store)

    parked = ran("send", "hi", "--agent", "main", *both, "--json")
    left = ran(
        "send", "ho", "--agent", "main", "--timeout", "0", "--config", config, "--store", store, "--json"
    )
    waiting = ran("runs", "--open", "--store", store, "--json").json["count"]
    ran("send", "now", "--agent", "main", "--agents", named("agents"), "--store", store)
    told = ran("replay", "main", "--store", store).out

    assert (parked.exit_code, parked.json["status"]) == (0, "accepted")
    assert parked.json["pending"] == "no_agent"
    assert left.json["status"] == "accepted"
    assert waiting == 2
    assert [said for said in ("main: hi", "main: ho", "main: now") if said in told] == [
        "main: hi",
        "main: ho",
        "main: now",
    ]


def test_no_follow_comes_back_with_the_reply_and_leaves_the_rest(demo_log: DemoLog, tmp_path: Path) -> None:
    store = demo_log.copy(tmp_path)

    done = ran(
        "send", "And?", "--agent", "research", "--no-follow", "--agents", DEMO, "--store", store, "--json"
    )

    assert done.json["status"] == "ok"
    assert "beats" not in done.json


@pytest.mark.clause("SEND-11")
def test_the_same_idempotency_key_sends_once(folder: Path) -> None:
    again = (
        "--agent",
        "main",
        "--idempotency-key",
        "k",
        "--agents",
        named("agents"),
        "--store",
        folder / "s.db",
        "--json",
    )

    first, second = ran("send", "hi", *again), ran("send", "hi", *again)
    other = ran("send", "something else", *again)

    assert first.json["runId"] == second.json["runId"]
    assert ran("runs", "--store", folder / "s.db", "--json").json["count"] == 1
    assert (other.exit_code, other.json["code"]) == (1, "idempotency_conflict")


@pytest.mark.clause("VIS-6")
def test_as_a_session_one_reaches_no_more_than_it_may(folder: Path) -> None:
    store = folder / "s.db"
    hosted = ("--agents", named("agents"), "--store", store, "--json")
    ran("send", "hi", "--agent", "main", *hosted)

    done = ran("send", "hi", "--as", "main", "--agent", "research", *hosted)

    assert (done.exit_code, done.json["status"], done.json["code"]) == (1, "forbidden", "forbidden")


@pytest.mark.ci
def test_ctrl_c_ends_it_cleanly_and_the_next_host_goes_on(folder: Path) -> None:
    store = folder / "s.db"
    tokens = ("send", "hi", "--agent", "main", "--agents", named("stuck_agents"), "--store", store)
    with subprocess.Popen(
        process(*tokens),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_ctrl_c,  # noqa: PLW1509 - it only sets a signal
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if "stuck" in line:  # what the command prints may stand in the same line: two threads write
                break
        child.send_signal(signal.SIGINT)
        try:
            _, err = child.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            child.kill()  # else the test would wait for it for ever
            _, err = child.communicate()

    assert (child.returncode, err) == (130, "")
    ran("send", "again", "--agent", "main", "--agents", named("agents"), "--store", store)
    assert "main: hi" in ran("replay", "main", "--store", store).out


def test_send_as_a_process_finds_modules_in_the_current_directory(folder: Path) -> None:
    done = ran_as_process(
        "send", "hi", "--agent", "main", "--agents", named("agents"), "--store", "s.db", "--json", cwd=folder
    )

    assert done.json["reply"] == "main: hi"
    assert (folder / "s.db").is_file()


@pytest.mark.clause("STREAM-2")
def test_a_reply_is_shown_while_it_is_said(folder: Path) -> None:
    tokens = ("send", "Hello", "--agent", "main", "--agents", named("talkers"), "--store", folder / "s.db")
    with subprocess.Popen(
        process(*tokens, "--stream"),
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        first = child.stdout.read(len("Good "))
        rest, _ = child.communicate("go on\n", timeout=30)

    assert (first, child.returncode) == ("Good ", 0)
    assert rest.startswith("morning.\n\nok  run ")
    assert rest.count("morning") == 1


@pytest.mark.clause("STREAM-2")
def test_a_reply_that_comes_at_once_is_shown_all_the_same(folder: Path) -> None:
    done = ran(
        "send", "Hi", "--agent", "main", "--agents", named("agents"), "--store", folder / "s.db", "--stream"
    )

    assert done.exit_code == 0
    assert "main: Hi" in done.out


def test_a_growing_text_is_no_json(folder: Path) -> None:
    done = ran("send", "Hi", "--agent", "main", "--store", folder / "s.db", "--stream", "--json")

    assert done.exit_code == 2
    assert "--stream shows a text as it comes" in done.json["error"]
