"""What `intersession serve` says on the console: its start, what fails, and nothing that `logging.level` leaves out (D1, D6)."""

import json
import re
import socket
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.doors.command_line import ran
from support.doors.gateway_live import WAIT
from support.doors.served_gateway import ForkedGateway, config_for, token_of
from support.loopback import free_port


def changed(path: Path, **settings: Any) -> Path:
    given = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(given | settings), encoding="utf-8")
    return path


def with_its_model_down(path: Path) -> Path:
    given = json.loads(path.read_text(encoding="utf-8"))
    for provider in given["models"]["providers"].values():
        provider["baseUrl"] = f"http://127.0.0.1:{free_port()}/v1"
    return changed(path, **given)


def asked_and_ended(path: Path, store: Path) -> tuple[int, str]:
    served = ForkedGateway("--store", store, "--config", path)
    message = {"sessionKey": "agent:research:main", "message": "what is new?", "timeoutSeconds": WAIT}
    served.invoke(token_of(path), "sessions_send", message)
    served.signal()
    return served.end()


def test_a_start_says_what_is_configured_and_a_stop_that_it_stops(
    tmp_path: Path, endpoint: ThreadingHTTPServer
) -> None:
    """Before: `serve` said nothing after its first line."""
    path = config_for(tmp_path, endpoint)
    code, said = asked_and_ended(path, tmp_path / "log.db")

    assert code == 0
    for words in (
        f"log:      {tmp_path / 'log.db'}",
        f"config:   {path}, read again when it changes",
        "agent:    research, model ",
        f" at http://127.0.0.1:{endpoint.server_address[1]}\n",
        "channel:  none",
        "lets in:  holders of gateway.auth.token",
        "intersession.gateway stopping",
        "intersession.gateway stopped",
    ):
        assert words in said
    assert token_of(path) not in said
    assert "ERROR" not in said


@pytest.mark.ci
def test_with_the_model_down_the_console_says_why_nobody_gets_an_answer(
    tmp_path: Path, endpoint: ThreadingHTTPServer
) -> None:
    """Before: `serve` with the model down printed nothing."""
    path = with_its_model_down(config_for(tmp_path, endpoint))
    _, said = asked_and_ended(path, tmp_path / "log.db")

    (line,) = re.findall(r"^\S+ \S+ ERROR intersession\.runs run failed: .*$", said, re.MULTILINE)
    assert "session=agent:research:main" in line
    assert "code=backend" in line
    assert "Connection" in line
    address = json.loads(path.read_text(encoding="utf-8"))["models"]["providers"]["fake"]["baseUrl"]
    assert f"    model 'fake-1' at {address}" in said
    assert "    Traceback (most recent call last):" in said


@pytest.mark.parametrize(("level", "shows"), [("silent", False), ("fatal", False), ("error", True)])
@pytest.mark.ci
def test_the_level_decides_what_is_printed(
    tmp_path: Path, endpoint: ThreadingHTTPServer, level: str, *, shows: bool
) -> None:
    """Before: `logging.level` did nothing."""
    path = changed(with_its_model_down(config_for(tmp_path, endpoint)), logging={"level": level})
    _, said = asked_and_ended(path, tmp_path / "log.db")

    assert ("ERROR intersession.runs" in said) == shows
    assert "intersession.gateway stop" not in said


def test_a_refused_start_makes_no_log(tmp_path: Path, endpoint: ThreadingHTTPServer) -> None:
    """Before: a refused start had already made a log."""
    path, store = config_for(tmp_path, endpoint), tmp_path / "log.db"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        no_address = ran("serve", "--config", path, "--store", store, "--port", taken.getsockname()[1])
    no_token = ran("serve", "--config", changed(path, gateway={}), "--store", store, "--port", 0)

    assert (no_address.exit_code, no_token.exit_code) == (3, 1)
    assert "gateway.auth.token" in no_token.err
    assert not list(tmp_path.glob("log.db*"))
