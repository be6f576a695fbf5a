"""`intersession doctor` names what is wrong now, on a log in use and on one that is not, and says what to do (D1, D2, D6, A22)."""

import json
import sqlite3
import sys
from contextlib import closing
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from intersession import MemoryChannel
from intersession.cli.commands.doctor import disk_findings
from intersession_events.basics.machine import VERSION, wall_clock_ms
from intersession_events.facts import DeliveryDone, DeliveryFailed, DeliveryUnknown
from support import mcp_server
from support.doors.command_line import DemoLog, Ran, ran
from support.doors.gateway_live import LiveGateway
from support.fakes import ManualClock
from support.hosts_code import broken, doubts, fails, parrot, refuses
from support.loopback import free_port
from support.running import Booth, Gate, speak, wait_for

TOKEN = {"gateway": {"auth": {"token": "the-token-of-this-test"}}}


def examined(store: object, *tokens: object) -> tuple[Ran, dict[str, dict[str, str]]]:
    done = ran("doctor", "--store", store, *tokens, "--json")
    return done, {finding["code"]: finding for finding in done.json["findings"]}


def test_a_log_with_nothing_wrong_is_said_to_be_well(demo_log: DemoLog) -> None:
    done, found = examined(demo_log.path)
    shown = ran("doctor", "--store", demo_log.path)

    assert (done.exit_code, done.json["ok"]) == (0, True)
    assert {finding["level"] for finding in found.values()} <= {"note"}
    assert "nothing is wrong" in shown.out


@pytest.mark.parametrize(
    ("channel", "event", "code"),
    [
        (refuses, DeliveryFailed, "deliveries_failed"),
        (doubts, DeliveryUnknown, "deliveries_unknown"),
        (fails, DeliveryFailed, "deliveries_retrying"),
    ],
)
def test_texts_that_did_not_arrive_are_named_with_their_channel(
    booth: Booth, channel: Any, event: Any, code: str
) -> None:
    """Before: failed deliveries were invisible."""
    system = booth.start({"main": parrot}, {"telegram": channel})
    speak(system)
    wait_for(system, event)

    _, found = examined(booth.url)

    assert found[code]["level"] == "warning"
    assert "telegram: 1" in found[code]["what"]
    assert found[code]["advice"]


def test_an_agent_that_fails_now_is_an_error_and_one_that_has_failed_a_warning(booth: Booth) -> None:
    """Before: an agent that failed left no trace."""
    system = booth.start({"main": broken, "ops": parrot}, {"telegram": MemoryChannel()})
    run_id = speak(system)["runId"]
    wait_for(system, DeliveryDone)
    fails_now, now = examined(booth.url)
    speak(system, agent_id="ops")
    failed_once, later = examined(booth.url)

    assert (fails_now.exit_code, failed_once.exit_code) == (1, 0)
    assert "ValueError: no model" in now["runs_fail"]["what"]
    assert run_id in now["runs_fail"]["advice"]
    assert later["runs_failed"]["level"] == "warning"
    for advice in (now["runs_fail"]["advice"], later["runs_failed"]["advice"]):
        assert f"`intersession retry {run_id}`" in advice


def test_open_work_that_nobody_does_is_named_after_a_stop(booth: Booth) -> None:
    """Before: after a stop `runs --open` said "at work"."""
    gate = Gate()
    hangs = gate.saying("late")
    system = booth.start({"main": hangs})
    speak(system, wait=None)
    gate.reached()
    _, during = examined(booth.url)
    system.close(grace=0)
    _, after = examined(booth.url)
    gate.open()

    assert "nobody_at_work" not in during
    assert "writer" in during
    assert "open: 1 run, 0 flows" in after["nobody_at_work"]["what"]


def test_a_process_with_a_gateway_is_asked_how_it_is(booth: Booth, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: channels nobody registered, agents nobody registered, from the process itself."""
    config = {**TOKEN, "agents": {"list": [{"id": "main", "default": True}, {"id": "ops"}]}}
    system = booth.start({"main": parrot}, None, config)
    speak(system)
    speak(system, agent_id="ops", wait=None)
    with LiveGateway(system) as live:
        system.log.announce_gateway(live.address)
        monkeypatch.delenv("INTERSESSION_GATEWAY_TOKEN", raising=False)
        _, unknown = examined(booth.url)
        monkeypatch.setenv("INTERSESSION_GATEWAY_TOKEN", TOKEN["gateway"]["auth"]["token"])
        _, asked = examined(booth.url)

    assert unknown["process_not_asked"]["level"] == "note"
    assert "'telegram'" in asked["channel_missing"]["what"]
    assert "agent:ops:main" in asked["parked_runs"]["what"]


def test_settings_without_effect_and_bad_ones_are_named(demo_log: DemoLog, tmp_path: Path) -> None:
    """Before: settings that did nothing."""
    idle, bad = tmp_path / "idle.json5", tmp_path / "bad.json5"
    idle.write_text("{gateway: {controlUi: {basePath: '/ui'}}}", encoding="utf-8")
    bad.write_text("{session: {scope: 'nowhere'}}", encoding="utf-8")

    well, found = examined(demo_log.path, "--config", idle)
    refused, problems = examined(demo_log.path, "--config", bad)

    assert (well.exit_code, refused.exit_code) == (0, 1)
    assert "gateway.controlUi.basePath" in found["setting"]["what"]
    assert "session.scope" in problems["config_bad"]["what"]


def test_a_log_that_is_not_there_or_none_is_a_finding_and_no_traceback(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.write_bytes(b"something else" * 100)

    for store in (tmp_path / "none.db", other):
        done, found = examined(store)
        assert done.exit_code == 1
        assert found["store_unreadable"]["level"] == "error"
    assert not (tmp_path / "none.db").exists()


def test_of_a_server_that_is_away_nobody_says_that_the_log_may_be_damaged() -> None:
    done, found = examined("postgresql://app:s3cr3t@127.0.0.1:1/bots")

    assert done.exit_code == 1
    assert found["store_unreadable"]["advice"].endswith("see to it that its server runs and takes this role")
    assert "s3cr3t" not in done.out + done.err


@pytest.mark.clause("E2")
def test_of_a_log_of_a_later_format_nobody_says_that_it_may_be_damaged(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(demo_log.path)) as source, closing(sqlite3.connect(path)) as rows:
        source.backup(rows)
        rows.execute("UPDATE log_identity SET format=3")
        rows.commit()

    done, found = examined(path)

    assert done.exit_code == 1
    told = f"has format 3, and this version ({VERSION}) reads and writes format 1 alone"
    assert told in found["store_unreadable"]["what"]
    assert found["store_unreadable"]["advice"].endswith("install the version that wrote it, or a later one")


@pytest.mark.clause("L8")
def test_a_log_that_a_wrong_clock_has_brought_ahead_is_named_with_its_first_position(booth: Booth) -> None:
    now = wall_clock_ms()
    clock = ManualClock(now)
    system = booth.start({"main": parrot}, clock=clock)
    speak(system)
    before = system.log.head()
    clock.set_wall(now + 240_000)
    speak(system)
    _, minutes = examined(booth.url)
    clock.set_wall(now + 315_360_000_000)
    speak(system)
    clock.set_wall(now)
    _, found = examined(booth.url)
    speak(system)
    booth.close()
    _, after = examined(booth.url)

    assert "log_ahead" not in minutes
    assert found["log_ahead"]["level"] == "warning"
    first = int(found["log_ahead"]["what"].partition("from position ")[2].partition(" ")[0])
    assert first > before
    assert "name places by position" in found["log_ahead"]["advice"]
    assert "1 time, the last time ahead by 3650 days" in found["clock_stepped"]["what"]
    assert found["clock_stepped"]["level"] == "warning"
    assert "log_ahead" not in after
    assert "2 times, the last time back by 3650 days" in after["clock_stepped"]["what"]
    assert after["clock_stepped"]["level"] == "note"


def test_little_room_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.touch()

    def found(mib: int) -> list[tuple[str, str]]:
        with_room = disk_findings(str(path), free_bytes=lambda _folder: mib << 20)
        return [(finding.code, finding.level) for finding in with_room]

    assert [found(mib) for mib in (5, 500, 5_000)] == [
        [("disk_full", "error")],
        [("disk_full", "warning")],
        [],
    ]


def models(tmp_path: Path, port: int) -> Path:
    path = tmp_path / "models.json5"
    provider = f"{{baseUrl: 'http://127.0.0.1:{port}/v1', apiKey: 'k', models: [{{id: 'm'}}]}}"
    path.write_text(f"{{models: {{providers: {{here: {provider}}}}}}}", encoding="utf-8")
    return path


def test_mcp_servers_are_asked_when_that_is_wanted(demo_log: DemoLog, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json5"
    program = [str(mcp_server.__file__), str(tmp_path / "asked")]
    there = {"command": sys.executable, "args": ["-S", "-I", *program]}
    servers = {
        "there": there,
        "gone": {"command": "no-such-program-here"},
        "off": {**there, "enabled": False},
    }
    path.write_text(json.dumps({"mcp": {"servers": servers}}), encoding="utf-8")

    _, unasked = examined(demo_log.path, "--config", path)
    _, asked = examined(demo_log.path, "--config", path, "--probe")

    assert "mcp_server_down" not in unasked
    assert "mcp.servers.gone gives no tools" in asked["mcp_server_down"]["what"]


def test_endpoints_are_asked_only_when_that_is_wanted(
    demo_log: DemoLog, tmp_path: Path, endpoint: ThreadingHTTPServer
) -> None:
    down = models(tmp_path, free_port())
    _, unasked = examined(demo_log.path, "--config", down)
    _, asked = examined(demo_log.path, "--config", down, "--probe")
    _, answers = examined(demo_log.path, "--config", models(tmp_path, endpoint.server_address[1]), "--probe")

    assert "endpoint_down" not in unasked
    assert "models.providers.here at http://127.0.0.1:" in asked["endpoint_down"]["what"]
    assert "endpoint_down" not in answers
