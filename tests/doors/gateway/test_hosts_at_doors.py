"""The hosts of a log are the same at every door, and so are the numbers that scale workers (HOSTS-1, HOSTS-3)."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from intersession import SessionSystem, echo
from intersession_events.log.work_queue import Offer, Worker
from support.doors.following import door, with_door, writing
from support.doors.gateway_live import READER, TOKEN, WAIT, LiveGateway
from support.running import merged

CONFIG = merged(with_door(), {"agents": {"list": [{"id": "main"}, {"id": "ops"}]}})
SESSION = "agent:research:main"


def scraped(live: LiveGateway) -> Mapping[tuple[str, ...], float]:
    """Return the metrics of hosts, by name and labels."""
    given = {"authorization": f"Bearer {TOKEN}"}
    text = httpx.get(f"{live.address}/metrics", headers=given, timeout=WAIT, trust_env=False).text
    return {
        (family.name.removeprefix("intersession_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if family.name.endswith(("calls", "workers", "doors", "standbys", "positions"))
    }


@pytest.mark.clause("HOSTS-1", "HOSTS-3")
def test_a_door_names_the_hosts_and_counts_the_calls_that_the_writer_does(log_url: str) -> None:
    with (
        SessionSystem(log_url, agents={"main": echo()}, config=CONFIG) as system,
        writing(system) as live,
        door(log_url, CONFIG) as front,
        front.live.client() as client,
        front.live.client(READER) as limited,
    ):
        work = system.log.work.to_take
        work.announce(
            Worker(name="one", host="gpu", version="9", agents={"research": "{}"}, channels={}, seats=1)
        )
        for run in ("r1", "r2", "r3"):
            offer = Offer(
                kind="agent",
                id=run,
                attempt=1,
                name="research",
                stream=f"session:{SESSION}",
                version=1,
                secret="s",
            )
            system.log.work.offer([offer])
        work.take("one", 1, 0)
        client.request("chat.send", {"sessionKey": "agent:ops:main", "message": "hi", "idempotencyKey": "k"})
        there: Any = client.request("debug.hosts")["payload"]
        own: Any = system.debug.hosts()
        refused = limited.request("debug.hosts")["error"]
        numbers, numbers_there = scraped(live), scraped(front.live)

    unlike = {"position"}
    assert {name: there[name] for name in own.keys() - unlike} == {
        name: own[name] for name in own.keys() - unlike
    }
    assert own["writer"]["gateway"] == live.address
    assert refused["details"]["code"] == "forbidden"
    assert numbers["waiting_calls", "research"] == 2
    assert (numbers["waiting_calls", "main"], numbers["waiting_calls", "ops"]) == (0, 1)
    assert [numbers["calls", "research", state] for state in ("waiting", "under_way")] == [2, 1]
    assert (numbers["workers",], numbers["standbys",]) == (1, 0)
    assert {name: value for name, value in numbers_there.items() if name[0] != "held_calls"} == {
        name: value for name, value in numbers.items() if name[0] != "held_calls"
    }
