"""The server goes while a command asks it, at whatever answer: the command says so, and is no fault of this software."""

import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from intersession.gateway.process.startup import startup_lines
from intersession_events.stores.postgres.address import address_of
from support.any_log import Logs, changed_behind
from support.doors.command_line import (
    DemoLog,
    Ran,
    environment,
    hear_ctrl_c,
    process,
    ran,
    ran_as_process,
)
from support.postgres.network import network
from support.postgres.server import Server

HOST = "intersession.cli.commands.demo_agents:host"
COMMANDS = {
    "sessions": [],
    "runs": [],
    "history": ["main"],
    "replay": ["RUN"],
    "why": ["RUN"],
    "lens": ["RUN@turn:2"],
    "fork": ["RUN", "--at", "RUN@turn:2", "--no-run"],
    "verify": ["--views"],
    "search": ["lake"],
    "usage": [],
    "smells": [],
    "backup": ["FOLDER/log.dump"],
    "migrate": ["URL", "FOLDER/back.db"],
    "rebuild": ["search"],
    "label": ["main", "lake"],
    "send": ["And on Sunday?", "--agent", "research", "--agents", HOST],
    "checkpoint": [],
    "doctor": [],
    "export": ["openclaw", "FOLDER/state"],
}
WRITES = ("migrate", "rebuild", "label", "send", "checkpoint")
"""An append that may have been made is looked for as long as a server may take to come back: these are tried where they begin."""

MAKES = ("fork", "backup", "migrate", "export")
"""Who makes a file is not asked once more behind the last answers: it may have all that it wants."""


@pytest.fixture(scope="module")
def url(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of the demo's log on a server."""
    folder = tmp_path_factory.mktemp("demo")
    assert ran("demo", "--store", folder / "demo.db").exit_code == 0
    made = Logs(lambda: postgres).at(folder)
    assert ran("migrate", folder / "demo.db", made).exit_code == 0
    return made


@pytest.mark.postgres
@pytest.mark.clause("PG2")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_whose_server_goes_says_that_it_is_not_available(
    postgres: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PATH", str(postgres.binaries), prepend=":")
    rows = ran("runs", "--store", url, "--json").json["runs"]
    run = [row["id"] for row in rows if row["kind"] == "exchange"][-1]  # what `send` began is newer
    folder = tmp_path / "made"
    with network(postgres.directory) as between:
        address = address_of(url)
        through = between.url(address.schema, files=str(tmp_path))
        tokens = [
            token.replace("RUN", run).replace("FOLDER", str(folder)).replace("URL", through)
            for token in COMMANDS[name]
        ]
        store = [] if name == "migrate" else ["--store", through]

        def asked() -> Ran:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            # As a quarter of a minute later: who had the log as the server went may be taken to be gone.
            changed_behind(url, "UPDATE log_writer SET alive_until = '-infinity'")
            return ran(name, *tokens, *store, "--json")

        assert asked().exit_code == 0  # what is made once is made
        before = between.answered
        whole = asked()
        assert whole.exit_code == 0
        last = 6 if name in WRITES else between.answered - before
        for answer in sorted({1, 2, last // 3, last // 2, last * 2 // 3, last * 5 // 6}):
            between.to = postgres.directory
            between.gone_after(answer)
            done = asked()
            assert is_told(done), (answer, done)
            assert list(folder.iterdir()) == []
        # How many the last ones are differs by the end of a transaction that only read.
        for answer in range(last - 3, last + 1) if name not in (*WRITES, *MAKES) else ():
            between.to = postgres.directory
            between.gone_after(answer)
            done = asked()
            assert done == whole or is_told(done), (answer, done)


@pytest.mark.postgres
@pytest.mark.clause("PG2")
@pytest.mark.parametrize("answer", [1, 8, 15, 31, 43])
def test_a_move_to_a_server_that_goes_is_not_available_and_goes_on_when_it_is_back(
    demo_log: DemoLog, postgres: Server, postgres_url: str, tmp_path: Path, answer: int
) -> None:
    """While the tables were made it was said that the move had failed."""
    with network(postgres.directory) as between:
        through = between.url(address_of(postgres_url).schema, files=str(tmp_path))
        move = ("migrate", demo_log.copy(tmp_path), through, "--json")
        between.gone_after(answer)
        gone = ran(*move)
        between.to = postgres.directory
        again = ran(*move)

    assert (gone.exit_code, gone.json["code"]) == (3, "unavailable")
    assert (again.exit_code, again.json["ok"]) == (0, True)


@pytest.mark.postgres
@pytest.mark.clause("PG2")
@pytest.mark.parametrize("name", ["sessions", "verify"])
def test_a_command_whose_server_says_nothing_any_more_ends_by_ctrl_c(
    postgres: Server, url: str, tmp_path: Path, name: str
) -> None:
    """It went on waiting for the answers to what it had asked."""
    kept_back = threading.Event()
    with network(postgres.directory) as between:
        through = between.url(address_of(url).schema, files=str(tmp_path))

        def silent(_said: bytes) -> bool:
            if between.answered >= 9:  # it has been opened
                between.keep_answers()
                kept_back.set()
            return False

        between.cut_instead_of(silent)
        with subprocess.Popen(
            process(name, "--store", through),
            env=environment(),
            stderr=subprocess.PIPE,
            preexec_fn=hear_ctrl_c,  # noqa: PLW1509 - it only sets a signal
        ) as command:
            assert kept_back.wait(60)
            with pytest.raises(subprocess.TimeoutExpired):
                command.wait(1)
            command.send_signal(signal.SIGINT)
            try:
                assert command.wait(30) == 130
            finally:
                command.kill()


@pytest.mark.postgres
@pytest.mark.clause("PG2")
def test_a_host_whose_server_goes_as_it_starts_says_so(postgres: Server, url: str, tmp_path: Path) -> None:
    """As it told others where its gateway is, it ended with a traceback."""
    with network(postgres.directory) as between:
        through = between.url(address_of(url).schema, files=str(tmp_path))

        def telling(asked: bytes) -> bool:
            return b"SET gateway" in asked

        between.cut_before(telling)
        changed_behind(url, "UPDATE log_writer SET alive_until = '-infinity'")
        told = ran_as_process(
            "serve", "--store", through, "--port", "0", variables={"INTERSESSION_GATEWAY_TOKEN": "t" * 40}
        )

    assert told.exit_code == 3
    assert "unavailable" in told.err
    assert "Traceback" not in told.err


@pytest.mark.postgres
@pytest.mark.clause("PG2")
def test_a_host_whose_server_went_tells_what_it_has_all_the_same(
    postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    """It looked for what waits in the log, which nobody could read."""
    with network(postgres.directory) as between:
        through = between.url(address_of(postgres_url).schema, files=str(tmp_path))
        with SessionSystem(through, agents={"main": echo()}) as system:
            between.to = postgres.directory / "gone"
            between.cut()
            lines = startup_lines(system, "http://127.0.0.1:1", config_file=None)
            between.to = postgres.directory

    assert lines[-1].startswith("store:    not available: ")


def is_told(done: Ran) -> bool:
    """Whether a command says that its server is gone, and nothing of how it was asked."""
    said = done.out + done.err
    if "Traceback" in said:
        return False
    return (done.exit_code == 3 and "unavailable" in said) or (
        done.exit_code == 1 and ("backup_failed" in said or "store_unreadable" in said)
    )
