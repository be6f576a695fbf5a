"""Commands that must write ask a host without a gateway by the socket beside its log."""

import contextlib
import json
import os
import shutil
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, Turn
from intersession_actors.assembly.control.beside_log import ControlClient
from intersession_actors.rules.errors import ToolRefused
from support.doors.command_line import ran
from support.running import WAIT

pytestmark = pytest.mark.sqlite("about a file's host")


class FailsOnce:
    """An agent that fails on what it is asked first."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, turn: Turn) -> str:
        self.asked += 1
        if self.asked == 1:
            raise ValueError("not yet")
        return f"re {turn.message}"


def host_of(store: Path, **config: Any) -> SessionSystem:
    return SessionSystem(store, agents={"main": FailsOnce()}, channels={"x": lambda _: None}, config=config)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def host(store: Path) -> Iterator[SessionSystem]:
    with host_of(store) as system:
        yield system


def says(host: SessionSystem) -> str:
    answer = host.inbound(channel="x", chat_id="1", sender="1", text="hi", wait=WAIT)
    return str(answer["runId"])


@pytest.mark.clause("L12")
def test_what_doctor_advises_is_done_beside_a_host_without_a_gateway(
    host: SessionSystem, store: Path
) -> None:
    run_id = says(host)

    doctor = ran("doctor", "--store", store, "--json")
    assert f"intersession retry {run_id}" in doctor.out
    retried = ran("retry", run_id, "--store", store, "--json")
    labelled = ran("label", "agent:main:main", "Ann", "--store", store, "--json")
    sent = ran("send", "--to", "agent:main:main", "--store", store, "--timeout", "20", "--json", "more")

    assert [done.exit_code for done in (retried, labelled, sent)] == [0, 0, 0], (retried, labelled, sent)
    assert "re more" in sent.out
    listed = host.gateway.call("sessions.list", {})["sessions"]
    assert [row.get("label") for row in listed] == ["Ann"]


@pytest.mark.clause("L12")
def test_a_refusal_of_the_host_is_the_commands(host: SessionSystem, store: Path) -> None:
    says(host)

    done = ran("deliveries", "retry", "none", "--store", store, "--json")

    assert (done.exit_code, done.json["code"]) == (1, "invalid_request")
    assert "no delivery is called 'none'" in done.json["error"]


@pytest.mark.clause("L12")
def test_the_socket_is_its_owners_alone_and_goes_with_the_host(store: Path) -> None:
    path = store.with_name("s.db.control")
    with host_of(store):
        found = path.stat()
    assert (stat.S_ISSOCK(found.st_mode), stat.S_IMODE(found.st_mode)) == (True, 0o600)
    assert not path.exists()
    with pytest.raises(ToolRefused, match="does not answer"):
        ControlClient(str(store))


@pytest.mark.clause("L12")
def test_a_socket_that_a_dead_host_left_is_taken_away(store: Path) -> None:
    path = store.with_name("s.db.control")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))

    with host_of(store):
        assert ControlClient(str(store)).call("health")["ok"] is True


@pytest.mark.clause("L12")
def test_another_file_in_its_place_is_left_alone_and_the_host_starts(store: Path) -> None:
    path = store.with_name("s.db.control")
    path.write_text("mine")

    with host_of(store) as system:
        run_id = says(system)
        done = ran("retry", run_id, "--store", store, "--json")

    assert path.read_text() == "mine"
    assert (done.exit_code, done.json["code"]) == (3, "store_locked")


@pytest.mark.clause("L12")
def test_a_host_that_has_it_switched_off_says_what_to_do_instead(store: Path) -> None:
    with host_of(store, gateway={"controlSocket": False}) as system:
        done = ran("retry", says(system), "--store", store, "--json")

    assert not store.with_name("s.db.control").exists()
    assert (done.exit_code, done.json["code"]) == (3, "store_locked")
    assert "control socket is off" in done.json["error"]
    assert "gateway did not answer" not in done.json["error"]


@pytest.mark.clause("L12")
@pytest.mark.parametrize("name", ["s.db", "x" * 100 + ".db"])
def test_a_path_that_is_longer_than_an_address_of_a_socket_is_reached(tmp_path: Path, name: str) -> None:
    folder = tmp_path / ("a" * 100) / ("b" * 100)
    folder.mkdir(parents=True)

    with host_of(folder / name):
        assert ControlClient(str(folder / name)).call("health")["ok"] is True


@pytest.mark.clause("L12")
@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (("rebuild",), "stop it first"),
        (
            ("send", "hi", "--agent", "main", "--agents", "intersession.cli.commands.demo_agents:AGENTS"),
            "leave --agents out",
        ),
    ],
)
def test_a_command_that_has_to_be_the_writer_itself_says_so(
    host: SessionSystem, store: Path, command: tuple[str, ...], instead: str
) -> None:
    del host

    done = ran(*command, "--store", store, "--json")

    assert (done.exit_code, done.json["code"]) == (3, "store_locked")
    assert instead in done.json["error"]
    assert "can't ask" not in done.json["error"]


@pytest.mark.clause("L12", "VIS-6")
def test_who_sends_is_named_beside_a_host_as_it_is_without_one(host: SessionSystem, store: Path) -> None:
    says(host)
    ran("label", "agent:main:main", "Ann", "--store", store)
    given = ("--agent", "main", "--timeout", "5", "--store", store, "--json", "hi")

    named = [ran("send", "--as", who, *given) for who in ("main", "Ann")]
    unknown = ran("send", "--as", "nobody", *given)

    assert [done.json["code"] for done in named] == ["self_send", "self_send"]
    assert (unknown.exit_code, unknown.json["code"]) == (1, "not_visible")


@pytest.mark.clause("L12", "LIVE-1")
def test_what_is_held_is_followed_no_further_and_the_command_says_how_it_goes_on(
    host: SessionSystem, store: Path
) -> None:
    says(host)
    host.hold(session_key="agent:main:main", before="next")

    done = ran("send", "--agent", "main", "--timeout", "20", "--store", store, "hi")
    answer = ran("send", "--agent", "main", "--timeout", "20", "--store", store, "--json", "again").json

    run_id = host.status()["held"][0]["runId"]
    assert f"not over: it is held; `intersession release {run_id}` lets it go on" in done.out
    assert (answer["reply"], answer["pending"]) == ("re again", "held")


@pytest.mark.clause("L12")
def test_a_host_that_hangs_is_named_at_once_by_commands_and_by_doctor(store: Path) -> None:
    with host_of(store, gateway={"controlSocket": False}) as system, socket.socket(socket.AF_UNIX) as hung:
        says(system)
        hung.bind(str(store.with_name("s.db.control")))
        hung.listen()
        threading.Thread(target=hang_up_on_all, args=(hung,), daemon=True).start()

        labelled = ran("label", "agent:main:main", "Ann", "--store", store, "--json")
        rebuilt = ran("rebuild", "--store", store, "--json")
        doctor = ran("doctor", "--store", store, "--json")
        hung.shutdown(socket.SHUT_RDWR)

    assert (labelled.exit_code, labelled.json["code"]) == (3, "unavailable")
    assert "it is stopped, or hangs" in labelled.json["error"]
    assert (rebuilt.exit_code, rebuilt.json["code"]) == (3, "store_locked")
    assert "it is stopped, or hangs" in rebuilt.json["error"]
    assert doctor.exit_code == 1
    found = {finding["code"]: finding["level"] for finding in doctor.json["findings"]}
    assert found["process_silent"] == "error"


def hang_up_on_all(hung: socket.socket) -> None:
    """Close each connection without a word, as the time that a command waits for one does in the end."""
    with contextlib.suppress(OSError):
        while True:
            hung.accept()[0].close()


@pytest.mark.clause("L12", "X7")
@pytest.mark.parametrize(
    "line",
    [b"\n", b"{}\n", b"[]\n", b"\xff\n", b'{"method":1}\n', b'{"method":"none"}\n', b"[" * 5_000 + b"\n"],
)
def test_what_is_no_request_is_refused_and_the_next_one_is_answered(
    host: SessionSystem, store: Path, line: bytes
) -> None:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(WAIT)
        asking.connect(str(store.with_name("s.db.control")))
        asking.sendall(line)
        answer = json.loads(asking.makefile().readline())

    assert (answer["ok"], answer["code"]) == (False, "invalid_request")
    assert ControlClient(str(store)).call("health")["logId"] == host.log.log_id


@pytest.mark.clause("L12")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_told_nothing_even_where_the_file_lets_them_in() -> None:
    folder = Path(tempfile.mkdtemp(prefix="intersession-test-"))
    folder.chmod(0o755)
    try:
        with host_of(folder / "s.db"):
            path = folder / "s.db.control"
            path.chmod(0o666)
            child = os.fork()
            if child == 0:
                os._exit(_as_nobody(path))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        shutil.rmtree(folder)


def _as_nobody(path: Path) -> int:
    """Return 0 if whoever is another user hears nothing."""
    os.setuid(65_534)
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(WAIT)
        asking.connect(str(path))
        try:
            asking.sendall(b'{"method":"health"}\n')
            return 1 if asking.recv(1) else 0
        except ConnectionError:
            return 0
