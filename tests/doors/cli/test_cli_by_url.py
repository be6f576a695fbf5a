"""The same log in a file and on a server: nothing is changed but the URL, whatever command reads it or writes to it."""

import signal
from http.server import ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from intersession_events.stores.opened import located
from support.any_log import Logs
from support.doors.command_line import DemoLog, ran
from support.doors.gateway_live import WAIT
from support.doors.served_gateway import ForkedGateway, config_for, token_of
from support.paths import DATA
from support.postgres.server import Server

pytestmark = pytest.mark.postgres

SECRET = "never-shown-7f3a"
STATE = DATA / "openclaw" / "household"


@pytest.fixture
def on_server(postgres: Server) -> Logs:
    """Where logs lie: on a server alone."""
    return Logs(lambda: postgres)


def with_password(url: str) -> str:
    return url.replace("postgres@/", f"postgres:{SECRET}@/")


def test_every_reading_command_says_the_same_of_a_log_in_a_file_and_on_a_server(
    demo_log: DemoLog, on_server: Logs, tmp_path: Path
) -> None:
    """Issue 13: change the URL, and nothing else."""
    file, url = demo_log.copy(tmp_path), with_password(on_server.at(tmp_path))
    assert ran("migrate", file, url).exit_code == 0
    exchange, spawn = demo_log.exchange, demo_log.spawn
    run = ran("runs", "--kind", "exchange", "--store", file, "--json").json["runs"][0]["runId"]
    differing = {}
    for tokens in (
        ("sessions",),
        ("history", "main"),
        ("runs",),
        ("messages",),
        ("deliveries",),
        ("usage",),
        ("events", "--limit", "20"),
        ("show", exchange),
        ("show", run, "--at", "turn:2"),
        ("replay", exchange),
        ("replay", spawn),
        ("why", exchange),
        ("state",),
        ("state", "--at", str(demo_log.closed)),
        ("lens", run),
        ("origin", run),
        ("smells",),
        ("search", "ferry"),
        ("diff", exchange, spawn),
        ("audit", "access"),
        ("forks",),
        ("doctor",),
        ("sessions", "--at", str(demo_log.closed)),
        ("runs", "--at", str(demo_log.closed)),
    ):
        for form in ((), ("--json",)):
            one, other = (ran(*tokens, *form, "--store", place) for place in (file, url))
            assert SECRET not in other.out + other.err
            told = other.out.replace(located(url).shown, str(file)), other.exit_code
            if told != (one.out, one.exit_code):
                differing[tokens] = (one, other)

    assert differing == {}


def test_what_changes_a_log_changes_one_on_a_server_and_it_stays_proven(
    demo_log: DemoLog, on_server: Logs, tmp_path: Path
) -> None:
    url = with_password(on_server.at(tmp_path))
    assert ran("migrate", demo_log.path, url).exit_code == 0
    said = []
    for tokens in (
        ("checkpoint",),
        ("fork", demo_log.exchange, "--no-run"),
        ("rebuild",),
        ("export", "openclaw", tmp_path / "exported"),
        ("verify", "--views"),
    ):
        done = ran(*tokens, "--store", url)
        assert done.exit_code == 0, (tokens, done.err)
        said.append(done.out + done.err)

    imported = with_password(on_server.at(tmp_path, "imported"))
    report = ran("import", "openclaw", STATE, "--store", imported, "--json")
    in_file = ran("import", "openclaw", STATE, "--store", tmp_path / "imported.db", "--json")
    assert report.exit_code == in_file.exit_code == 0
    assert report.json["sessions"] == in_file.json["sessions"]
    told = [
        ran("sessions", "--limit", "100", "--store", place).out
        for place in (imported, tmp_path / "imported.db")
    ]
    assert told[0] == told[1]
    assert ran("verify", "--store", imported).exit_code == 0
    assert SECRET not in "".join((*said, report.out, report.err))


def test_a_gateway_on_a_server_is_killed_and_the_next_one_goes_on(
    on_server: Logs, tmp_path: Path, endpoint: ThreadingHTTPServer
) -> None:
    """Issue 13: `serve --store postgresql://…`, commands beside it, and `kill -9`."""
    url, config = with_password(on_server.at(tmp_path)), config_for(tmp_path, endpoint)
    said = []
    for number in range(2):
        served = ForkedGateway("--store", url, "--config", config)
        try:
            sent = ran(
                "send", f"hello {number}", "--to", "main", "--store", url, "--config", config, "--json"
            )
            assert sent.exit_code == 0, sent.err
            listed = served.invoke(token_of(config), "sessions_list", {})
            assert listed.json()["ok"]
            page = httpx.get(f"{served.address}/health", timeout=WAIT, trust_env=False)
            told = ran("history", "main", "--store", url)
            assert [f"hello {one}" in told.out for one in range(number + 1)] == [True] * (number + 1)
            said += [sent.out, sent.err, listed.text, page.text, told.out, told.err]
        finally:
            served.child.kill()
            code, words = served.end()
        assert code == -signal.SIGKILL
        said.append(words)

    assert ran("verify", "--store", url).exit_code == 0
    assert SECRET not in "".join(said)
