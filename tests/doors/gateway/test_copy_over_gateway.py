"""A copy that is taken through a gateway, by a credential that may do nothing else (COPY-3)."""

from pathlib import Path

import pytest

from intersession import File, MemoryChannel, SessionSystem, ToolRefused, echo
from intersession.gateway.copied import GatewaySource
from intersession.gateway.protocol.client import GatewayClient
from intersession_events.basics.errors import BackupFailed, StoreUnavailable
from intersession_events.copies.following.taking import LogCopy
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from support.any_log import Logs
from support.doors.command_line import ran
from support.doors.gateway_live import GATEWAY, READER, WAIT, LiveGateway
from support.running import merged

COPY = "a-token-for-copies-0123456789"
CONFIG = merged(
    GATEWAY,
    {
        "gateway": {
            "auth": {
                "credentials": [
                    *GATEWAY["gateway"]["auth"]["credentials"],
                    {"name": "copies", "token": COPY, "scopes": ["copy"]},
                ]
            }
        }
    },
)


@pytest.mark.clause("COPY-3")
def test_a_copy_follows_a_log_through_its_gateway(
    logs: Logs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, copy = logs.at(tmp_path), LogCopy(tmp_path / "copy.db")
    channels = {"telegram": MemoryChannel()}
    photo = File(data=b"%PDF-1.4 not really " * 40_000, mime_type="application/pdf", name="cat.pdf")
    with (
        SessionSystem(url, agents={"main": echo("heard: ")}, channels=channels, config=CONFIG) as system,
        LiveGateway(system) as live,
    ):
        source = GatewaySource(live.address, COPY)
        system.inbound(channel="telegram", chat_id="1", sender="ada", text="one", files=[photo], wait=WAIT)
        system.checkpoint()
        first = copy.take(source)
        system.inbound(channel="telegram", chat_id="1", sender="ada", text="two " * 400, wait=WAIT)
        second = copy.take(source)
        system.erase("agent:main:main", unsent="giveUp")
        third = copy.take(source)
        with pytest.raises(BackupFailed, match="gives no copy"):
            LogCopy(tmp_path / "other.db").take(GatewaySource(live.address, READER))
        with GatewayClient(live.address, COPY) as client, pytest.raises(ToolRefused, match="missing scope"):
            client.call("sessions.list")
        with monkeypatch.context() as set_here:
            set_here.setenv("INTERSESSION_GATEWAY_TOKEN", COPY)
            typed = ran("backup", tmp_path / "typed.db", "--from", live.address, "--json")
    assert (first.before, first.files, first.checked > 0) == (0, 1, True)
    assert second.position > first.position
    assert third.erased > 0
    assert list((tmp_path / "copy.db.files").glob("*")) == []
    assert (typed.exit_code, typed.json["position"] >= third.position) == (0, True)
    with open_log(str(copy.path), read_only=True) as log:
        assert verify_log(log).ok
    with pytest.raises(StoreUnavailable):
        copy.take(source)
    with (
        SessionSystem(tmp_path / "another.db", agents={"main": echo()}, config=CONFIG) as system,
        LiveGateway(system) as live,
        pytest.raises(BackupFailed, match="is a copy of the log"),
    ):
        copy.take(GatewaySource(live.address, COPY))
