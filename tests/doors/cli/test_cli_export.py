"""`export` writes what `import` reads back, of a log that somebody may be writing to."""

from pathlib import Path

import pytest

from intersession import MemoryChannel, SessionSystem, echo
from support.doors.command_line import ran
from support.running import WAIT


def hosted(store: Path) -> SessionSystem:
    return SessionSystem(
        f"sqlite:///{store}", agents={"main": echo("main")}, channels={"webchat": MemoryChannel()}
    )


@pytest.mark.clause("EXP-1", "EXP-3")
def test_a_log_is_exported_beside_its_host_and_read_back(tmp_path: Path) -> None:
    store, state, again = tmp_path / "log.db", tmp_path / "state", tmp_path / "again.db"
    with hosted(store) as system:
        system.inbound(channel="webchat", chat_id="1", sender="ada", text="hello", wait=WAIT)
        done = ran("export", "openclaw", state, "--store", store)
        in_host = system.export_openclaw(tmp_path / "other", sessions=["main"])
    ran("import", "openclaw", state, "--store", again)

    def told(path: Path) -> object:
        rows = ran("history", "main", "--store", path, "--raw", "--json").json["messages"]
        return [(row["id"], row["role"], row["runId"], row["timestamp"]) for row in rows]

    # The host is in this process, and says there as well what a busy machine made late.
    assert (done.exit_code, [line for line in done.err.splitlines() if "was slow" not in line]) == (0, [])
    assert f"Exported to {state}" in done.out
    assert told(again) == told(store) != []
    assert (in_host.sessions, in_host.messages) == (1, 2)


def test_what_can_not_be_exported_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    store = tmp_path / "log.db"
    with hosted(store) as system:
        system.inbound(channel="webchat", chat_id="1", sender="ada", text="hello", wait=WAIT)

    full = ran("export", "openclaw", tmp_path, "--store", store, "--json")
    unknown = ran("export", "openclaw", tmp_path / "out", "--store", store, "--session", "nobody", "--json")
    beyond = ran("export", "openclaw", tmp_path / "out", "--store", store, "--as-of", "9999", "--json")

    assert (full.exit_code, full.json["code"]) == (1, "export_failed")
    assert (unknown.exit_code, unknown.json["code"]) == (1, "not_visible")
    assert (beyond.exit_code, beyond.json["code"]) == (1, "invalid_request")
    assert not (tmp_path / "out").exists()
