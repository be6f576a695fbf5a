"""`health` says what is wrong, as `doctor` and `/metrics` do, also when the log can't be written or read."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from support.doors.gateway_live import GATEWAY, READER, WAIT, LiveGateway
from support.faulty_store import FAULT, FAULTY, disk_full
from support.hosts_code import parrot


@pytest.fixture(autouse=True)
def _mended() -> Iterator[None]:
    yield
    FAULT.down = None


def asked(live: LiveGateway, token: str | None = None) -> Any:
    with live.client(*(() if token is None else (token,))) as client:
        return client.request("health")["payload"]


def test_a_store_that_takes_nothing_is_no_good_health(tmp_path: Path) -> None:
    """Before: who watches `health` was told that all is well while nothing could be recorded."""
    config = {**GATEWAY, "runs": {"shutdownGraceSeconds": 0}}
    with (
        SqliteLog(tmp_path / "log.db", inline=inline_views(), environment=FAULTY) as log,
        SessionSystem(log, agents={"main": parrot}, config=config) as system,
        LiveGateway(system) as live,
    ):
        well = asked(live)
        FAULT.down = disk_full()
        system.gateway.call("chat.send", {"sessionKey": "main", "message": "hi", "idempotencyKey": "1"})
        operators, readers, direct = asked(live), asked(live, READER), system.gateway.call("health")
        status = system.gateway.call("status")

    assert (well["ok"], well["findings"]) == (True, [])
    for health in (operators, direct, status):
        assert health["ok"] is False
        (finding,) = health["findings"]
        assert (finding["code"], finding["level"]) == ("store_away", "error")
        assert "full" in finding["what"]
        assert "free space" in finding["advice"]
    assert readers["ok"] is False
    assert [finding["what"] for finding in readers["findings"]] == ["the process can't use its store"]


@pytest.mark.parametrize("how", ["deleted", "replaced", "cut"])
def test_a_log_that_is_not_there_any_more_is_told_before_anybody_writes(tmp_path: Path, how: str) -> None:
    """Before: an idle system was in good health on a file that was gone, until the next message was refused."""
    path = tmp_path / "log.db"
    with SessionSystem(path, agents={"main": parrot}, config=GATEWAY) as system:
        well = system.gateway.call("health")
        if how == "cut":
            os.truncate(path, 0)
        else:
            path.rename(tmp_path / "elsewhere.db")
            if how == "replaced":
                path.touch()
        health, status = system.gateway.call("health"), system.status()

    assert (well["ok"], health["ok"], status["store"]["available"]) == (True, False, False)
    assert "log.db" in health["findings"][0]["what"]


def test_health_is_answered_of_a_log_that_can_not_be_read(tmp_path: Path) -> None:
    """Before: nobody could even connect, and `health` was a refusal like any other."""
    with (
        SessionSystem(tmp_path / "log.db", agents={"main": parrot}, config=GATEWAY) as system,
        LiveGateway(system) as live,
    ):
        system.inbound(channel="telegram", chat_id="1", sender="p", text="hi", wait=WAIT)
        os.truncate(tmp_path / "log.db-wal", 0)
        health, readers = asked(live), asked(live, READER)
        status = system.gateway.call("status")

    assert [finding["code"] for finding in health["findings"]] == ["store_away"]
    assert "disk I/O error" in health["findings"][0]["what"]
    assert (health["ok"], health["position"], health["openRuns"]) == (False, None, None)
    assert {agent["sessions"]["count"] for agent in health["agents"]} == {None}
    assert (readers["ok"], "position" in readers) == (False, False)
    assert (status["ok"], status["store"]["available"], status["position"]) == (False, False, None)
