"""What is wrong with the hosts of a log, each with what to do (HOSTS-2)."""

from typing import Any

import pytest

from intersession_actors.running.failures.host_findings import host_findings

WRITER = {"host": "a", "pid": 1, "version": "2", "epoch": 3, "gateway": None}
STANDBY = {"name": "spare", "host": "b", "version": "2", "lag": None}


def worker(name: str = "one", **given: Any) -> dict[str, Any]:
    return {"name": name, "host": "gpu", "version": "2", "seats": 2, "taken": 0, "draining": False, **given}


def served(waiting: int, *workers: str, kind: str = "agent", parked: int = 0) -> dict[str, Any]:
    return {"kind": kind, "name": "research", "workers": list(workers), "waiting": waiting, "parked": parked}


def found(**given: Any) -> dict[str, tuple[str, str, str]]:
    hosts = {
        "unread": None,
        "writer": WRITER,
        "standbys": [STANDBY],
        "workers": [],
        "doors": [],
        "calls": [],
        **given,
    }
    return {one.code: (one.level, one.what, one.advice) for one in host_findings(hosts)}


@pytest.mark.clause("HOSTS-2")
@pytest.mark.parametrize(
    ("given", "code", "level", "said", "advice"),
    [
        (
            {"calls": [served(2)]},
            "no_worker",
            "warning",
            "2 calls of the agent 'research' wait, and no worker takes calls of it",
            "intersession work --agent research",
        ),
        (
            {"calls": [served(0, parked=3)]},
            "no_worker",
            "warning",
            "3 runs of the agent 'research' wait, and neither the writer nor a worker has it",
            "intersession work --agent research",
        ),
        (
            {"workers": [worker(draining=True)], "calls": [served(1, "one", kind="channel")]},
            "no_worker",
            "warning",
            "1 call of the channel 'research' waits",
            "intersession work --channel research",
        ),
        (
            {"workers": [worker(taken=2), worker("two", taken=2)], "calls": [served(1, "one", "two")]},
            "workers_full",
            "warning",
            "one, two have all 4 seats taken",
            "more seats (--seats)",
        ),
        (
            {"writer": None, "workers": [worker()]},
            "no_writer",
            "warning",
            "no process writes the log, and spare, one wait for one",
            "intersession serve --standby",
        ),
        (
            {"workers": [worker(version="1")]},
            "other_version",
            "note",
            "the writer has version 2; one has 1",
            "the writer last",
        ),
        (
            {"standbys": [], "workers": [worker()]},
            "no_standby",
            "note",
            "one need the log's writer",
            "intersession serve --standby",
        ),
        ({"unread": "no table"}, "hosts_unread", "note", "can't be seen: no table", "this version"),
        (
            {"doors": [{"name": "web", "host": "c", "version": "2", "lag": 1001}]},
            "door_lags",
            "warning",
            "the door web on c has 1001 events still to read",
            "connection",
        ),
    ],
)
def test_each_is_named_with_what_to_do(
    given: dict[str, Any], code: str, level: str, said: str, advice: str
) -> None:
    assert found(**given).keys() == {code}
    assert found(**given)[code][0] == level
    assert said in found(**given)[code][1]
    assert advice in found(**given)[code][2]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"standbys": []},
        {"writer": None, "standbys": []},
        {"workers": [worker(taken=1)], "calls": [served(1, "one", parked=1)]},
        {"writer": None, "standbys": [], "calls": [served(0, parked=1)]},
        {"doors": [{"name": "web", "host": "c", "version": "2", "lag": 1000}]},
    ],
)
def test_hosts_that_are_well_are_not_mentioned(given: dict[str, Any]) -> None:
    assert found(**given) == {}
