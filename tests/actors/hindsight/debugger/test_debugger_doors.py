"""The doors of the debugger: a log that is only read, and the gateway's methods, for the operator and for who stands for less."""

from pathlib import Path

import pytest

from intersession import NoSuchStore, SessionSystem, ToolRefused, echo, open_log
from intersession_actors.calls.service.callers import Caller
from intersession_events.facts import AccessRecorded
from support.any_log import changed_behind
from support.running import SEES_ALL, wait_for

MAIN, OPS = "agent:main:main", "agent:ops:main"


def started(path: Path) -> SessionSystem:
    system = SessionSystem(path / "log.db", agents={"main": echo(), "ops": echo()}, config=SEES_ALL)
    for agent in ("main", "ops"):
        system.inbound(channel="telegram", chat_id="1", text="hi", sender="ann", agent_id=agent, wait=20)
    return system


@pytest.mark.clause("PLACE-3")
def test_a_log_that_is_only_read_answers_like_its_host(tmp_path: Path) -> None:
    with started(tmp_path) as system, open_log(tmp_path / "log.db") as opened:
        at = system.log.head()
        assert opened.debug.state(at=at) == system.debug.state(at=at)
        assert opened.debug.verbs == system.debug.verbs


def test_a_log_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(NoSuchStore):
        open_log(tmp_path / "none.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.clause("PLACE-3", "VIS-4", "VIS-6")
def test_a_limited_credential_sees_its_sessions_alone_and_leaves_a_receipt(tmp_path: Path) -> None:
    with started(tmp_path) as system:
        limited = Caller.by_credential("desk", ("agent:ops:*",))
        found = system.gateway.perform("debug.state", {}, caller=limited)
        assert [session["key"] for session in found["sessions"]] == [OPS]
        assert {run["sessionKey"] for run in found["runs"]} == {OPS}
        assert "config" not in found
        receipt = wait_for(system, AccessRecorded, lambda event: event.tool == "debug.state")
        assert (receipt.credential, receipt.allowed) == ("desk", 1)

        main_run = system.debug.state("main")["runs"][0]["runId"]
        for name in (main_run, "0" * 36):
            with pytest.raises(ToolRefused, match="no exchange, spawn or run is called"):
                system.gateway.perform("debug.state", {"at": f"{name}@end"}, caller=limited)


@pytest.mark.clause("LIST-8", "PLACE-2")
def test_as_of_of_the_tools_takes_every_place_and_shows_nobody_a_run_of_others(log_url: str) -> None:
    closed = {"tools": {"sessions": {"visibility": "self"}}, "runs": {"shutdownGraceSeconds": 0}}
    with SessionSystem(log_url, agents={"main": echo(), "ops": echo()}, config=closed) as system:
        run = system.inbound(channel="telegram", chat_id="1", text="hi", sender="ann", wait=20)["runId"]
        system.inbound(channel="telegram", chat_id="1", text="hi", sender="ann", agent_id="ops", wait=20)
        ended = system.debug.state(run, at=f"{run}@end")["place"]

        def as_of(key: str | None, place: str) -> dict[str, object]:
            return dict(system.tools(key).call("sessions_list", {"asOf": place}))

        assert as_of(None, f"{run}@end")["asOf"] == ended["position"]
        assert as_of(MAIN, f"event:{ended['eventId']}")["asOf"] == ended["position"]
        hidden, nowhere = as_of(OPS, f"{run}@end"), as_of(OPS, f"{'0' * 36}@end")
        assert str(hidden["error"]).replace(run, "") == str(nowhere["error"]).replace("0" * 36, "")
        assert as_of(OPS, f"event:{ended['eventId']}")["code"] == "invalid_request"


@pytest.mark.clause("PLACE-1", "PLACE-3")
def test_a_log_whose_views_another_version_wrote_is_read_at_every_place(tmp_path: Path) -> None:
    """The events themselves are not where the views are folded beside."""
    with started(tmp_path) as system:
        place = system.debug.state(at=-3)
    changed_behind(tmp_path / "log.db", "UPDATE inline_views SET shape = shape - 1")
    with open_log(tmp_path / "log.db") as opened:
        assert opened.debug.state(at=f"event:{place['place']['eventId']}") == place
