"""Commands beside a running host, behind a pipe that closes, with bytes a terminal does not know."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from intersession.cli.shell.output import LEGIBLE
from intersession_events.stores.portable.identity import Holder
from intersession_events.stores.sqlite.writer_lock import WriterLock
from support.doors.command_line import DemoLog, environment, process, ran, ran_as_process, ran_forked
from support.paths import DATA

HOST = """
import sys
from intersession import SessionSystem, echo

config = {"gateway": {"controlSocket": False}}
with SessionSystem(sys.argv[1], agents={"main": echo("main: ")}, config=config) as system:
    system.inbound(channel="telegram", chat_id="1", sender="ada", text="hello", wait=20)
    print("ready", flush=True)
    for line in sys.stdin:
        system.inbound(channel="telegram", chat_id="1", sender="ada", text=line.strip(), wait=20)
        print("said", flush=True)
"""


class RunningHost:
    """A host in another process, which holds the log's lock."""

    def __init__(self, store: Path) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", HOST, str(store)],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._expect("ready")

    def hear(self, text: str) -> None:
        """Let a person say something, and wait until it is answered."""
        assert self._child.stdin is not None
        self._child.stdin.write(f"{text}\n")
        self._child.stdin.flush()
        self._expect("said")

    def stop(self) -> None:
        self._child.communicate(timeout=60)
        assert self._child.returncode == 0

    def _expect(self, word: str) -> None:
        assert self._child.stdout is not None
        assert self._child.stdout.readline().strip() == word


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("host") / "host.db"


@pytest.fixture(scope="module")
def host(store: Path) -> Iterator[RunningHost]:
    running = RunningHost(store)
    yield running
    running.stop()


def test_reading_works_beside_a_running_host_and_sees_what_it_does(host: RunningHost, store: Path) -> None:
    before = ran("history", "main", "--json", "--store", store).json["messages"]
    host.hear("more")
    after = ran("history", "main", "--json", "--store", store).json["messages"]

    assert [message["content"] for message in before if message["role"] == "user"] == ["hello"]
    assert [message["content"] for message in after if message["role"] == "user"] == ["hello", "more"]
    for command in (("sessions",), ("runs",), ("replay", "main"), ("verify",)):
        assert ran(*command, "--store", store).exit_code == 0


def test_reading_beside_a_host_leaves_nothing_in_its_log(host: RunningHost, store: Path) -> None:
    del host
    at = ran("sessions", "--json", "--store", store).json["asOf"]

    for command in (
        ("sessions", "--as", "main"),
        ("history", "main"),
        ("history", "agent:x:main", "--as", "main"),
    ):
        ran(*command, "--store", store)

    assert ran("sessions", "--json", "--store", store).json["asOf"] == at


@pytest.mark.parametrize(
    "command",
    [
        ("send", "hi", "--agent", "main", "--agents", "intersession.cli.commands.demo_agents:AGENTS"),
        ("send", "hi", "--agent", "main", "--timeout", "0"),
        ("import", "openclaw", str(DATA / "openclaw" / "household")),
    ],
    ids=lambda command: command[0],
)
def test_writing_beside_a_host_that_can_not_be_asked_is_refused_and_says_who_holds_the_log(
    host: RunningHost, store: Path, command: tuple[str, ...]
) -> None:
    del host
    done = ran_forked(*command, "--store", store, "--json")

    assert (done.exit_code, done.json["code"]) == (3, "store_locked")
    assert "has a writer already (pid " in done.json["error"]


def test_a_gateway_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERSESSION_GATEWAY_TOKEN", "t" * 32)
    lock = WriterLock(str(tmp_path / "s.db"))
    lock.tell(Holder(pid=1, gateway="http://127.0.0.1:1"))  # where nobody listens

    done = ran_forked("send", "hi", "--agent", "main", "--timeout", "0", "--store", tmp_path / "s.db")
    lock.release()

    assert done.exit_code == 3
    assert "gateway at http://127.0.0.1:1, which this command could not use" in done.err


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_a_pipe_that_closes_ends_a_command_silently(demo_log: DemoLog, json: tuple[str, ...]) -> None:
    with subprocess.Popen(
        process("replay", "main", "--steps", *json, "--store", demo_log.path),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        err = child.stderr.read()
        child.wait(timeout=30)

    assert (child.returncode, err) == (141, b"")


@pytest.mark.ci
def test_an_encoding_without_arrows_gets_ascii_where_we_draw_and_escapes_else(demo_log: DemoLog) -> None:
    """Diagrams were nothing but escapes there (issue 10)."""
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}

    in_words = ran_as_process("replay", demo_log.exchange, "--store", demo_log.path, variables=ascii_only)
    in_json = ran_as_process(
        "replay", demo_log.exchange, "--json", "--store", demo_log.path, variables=ascii_only
    )

    drawn = ran_as_process("show", demo_log.exchange, "--store", demo_log.path, variables=ascii_only)

    assert (in_words.exit_code, in_words.err) == (0, "")
    assert "main > research" in in_words.out
    assert in_json.json["id"] == demo_log.exchange
    assert (drawn.exit_code, drawn.err) == (0, "")
    assert "\\u" not in drawn.out
    in_full = ran("show", demo_log.exchange, "--store", demo_log.path).out
    assert list(map(len, drawn.out.splitlines())) == list(map(len, in_full.splitlines()))  # lanes stay lanes


@pytest.mark.parametrize(("letters", "told"), [("→ │ …", "> | ~"), ("é", "é"), ("→ω", r">\u03c9")])
def test_only_what_an_encoding_does_not_have_is_told_otherwise(letters: str, told: str) -> None:
    assert letters.encode("latin-1", LEGIBLE).decode("latin-1") == told


@pytest.mark.ci
def test_no_colour_is_no_colour_and_forced_colour_is_colour_of_ours_alone(demo_log: DemoLog) -> None:
    forced = ran_as_process("runs", "--store", demo_log.path, variables={"FORCE_COLOR": "1"})
    plain = ran_as_process(
        "replay", demo_log.exchange, "--store", demo_log.path, variables={"FORCE_COLOR": "1", "NO_COLOR": "1"}
    )

    assert "\x1b[1m" in forced.out
    assert "\x1b[3" not in plain.out


@pytest.mark.ci
@pytest.mark.parametrize(("closed", "options"), [(">&-", ("--json",)), ("<&- >&- 2>&-", ())])
def test_a_command_whose_output_was_closed_before_it_began_ends_as_any_other(
    demo_log: DemoLog, closed: str, options: tuple[str, ...]
) -> None:
    """With `--json` it ended with two tracebacks."""
    line = shlex.join(process("why", demo_log.exchange, "--store", demo_log.path, *options))
    done = subprocess.run(
        ["/bin/sh", "-c", f"{line} {closed}"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
