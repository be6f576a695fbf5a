"""`intersession hosts`: beside a host, and on a log that no process writes (HOSTS-1)."""

from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from intersession_events.basics.machine import VERSION
from intersession_events.log.work_queue import Offer, Worker
from support.doors.command_line import ran


@pytest.mark.clause("HOSTS-1", "HOSTS-2")
def test_hosts_and_calls_are_shown_and_doctor_says_what_is_wrong_with_them(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with SessionSystem(store, agents={"main": echo()}) as system:
        none = ran("hosts", "--store", store)
        worker = Worker(name="one", host="gpu", version="9", agents={}, channels={"irc": "{}"}, seats=2)
        system.log.work.to_take.announce(worker)
        stream = "session:agent:research:main"
        offer = Offer(kind="agent", id="r1", attempt=2, name="research", stream=stream, version=1, secret="s")
        system.log.work.offer([offer])
        some = ran("hosts", "--store", store)
        found = ran("hosts", "--store", store, "--json")
        wrong = ran("doctor", "--store", store)
    over = ran("hosts", "--store", store)

    assert none.out.split()[:6] == ["host", "name", "where", "version", "since", "(UTC)"]
    assert "epoch 1, without a gateway" in none.out
    assert VERSION in none.out
    for said in (
        "0 of 2 seats taken: channel irc",
        "agent research",
        "r1 attempt 2",
        "agent:research:main",
        "waits",
    ):
        assert said in some.out
    assert (found.json["workers"][0]["name"], found.json["count"]) == ("one", 1)
    assert "intersession work --agent research" in wrong.out
    assert "the writer has version" in wrong.out
    assert "no process writes the log" in over.out
