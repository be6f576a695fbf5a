"""`/metrics`: who may scrape it, that its numbers are those of the log, and that the page names every metric."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from intersession import MemoryChannel, SessionSystem
from intersession.gateway.metrics import COUNTERS, GAUGES
from intersession_events.facts import DeliveryDecided, DeliveryDone, DeliveryFailed, ExchangeClosed
from support.doors.gateway_live import GATEWAY, READER, TOKEN, WAIT, LiveGateway
from support.hosts_code import broken, parrot, refuses
from support.paths import DOCS
from support.running import QUIET, SEES_ALL, merged, wait_for
from support.soaking import until

PAGE = DOCS / "howto" / "monitoring.md"
MAIN = "agent:main:main"


def scraped(live: LiveGateway, token: str = TOKEN) -> httpx.Response:
    return httpx.get(
        f"{live.address}/metrics", headers={"authorization": f"Bearer {token}"}, timeout=WAIT, trust_env=False
    )


def values(text: str) -> dict[tuple[str, str], float]:
    """Return every sample by its name and its one label."""
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveGateway]:
    agents: dict[str, Any] = {"main": parrot, "ops": broken}
    channels: dict[str, Any] = {"telegram": MemoryChannel(), "discord": refuses}
    config = merged(SEES_ALL, GATEWAY, QUIET)
    with (
        SessionSystem(tmp_path / "log.db", agents=agents, channels=channels, config=config) as system,
        LiveGateway(system) as gateway,
    ):
        yield gateway


def speak(system: SessionSystem, channel: str, **given: Any) -> None:
    system.inbound(channel=channel, chat_id="42", sender="ann", text="hi", wait=WAIT, **given)


def test_the_numbers_are_those_of_what_happened(live: LiveGateway) -> None:
    system = live.door.system
    speak(system, "telegram")
    wait_for(system, DeliveryDone)
    speak(system, "discord")
    wait_for(system, DeliveryFailed)
    system.tools(MAIN).call("sessions_send", {"agentId": "ops", "message": "a", "timeoutSeconds": WAIT})
    wait_for(system, ExchangeClosed)
    speak(system, "nowhere", deliver=True)
    wait_for(system, DeliveryDecided, lambda decided: decided.route.channel == "nowhere")
    # Who waits for a run may know of its end before it is counted.
    until(lambda: values(scraped(live).text).get(("intersession_runs_total", "ok")) == 3)

    answer = scraped(live)
    found = values(answer.text)

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert found["intersession_runs_total", "ok"] == 3
    assert found["intersession_runs_total", "error"] == 1
    assert found["intersession_run_failures_total", "backend"] == 1
    assert found["intersession_sends_total", ""] == 1
    assert found["intersession_exchanges_closed_total", "run_failed"] == 1
    assert found["intersession_deliveries_total", "done"] == 1
    assert found["intersession_deliveries_total", "failed"] == 1
    assert found["intersession_failures_total", "run_failed"] == 1
    assert found["intersession_open_deliveries", "waiting"] == 1
    assert found["intersession_store_available", ""] == 1
    assert found["intersession_log_position", ""] == system.log.head()
    assert found["intersession_run_seconds_count", ""] == 4
    assert 0 < found["intersession_events_total", ""] <= system.log.head()


def test_no_label_names_a_session_a_run_or_a_channel(live: LiveGateway) -> None:
    system = live.door.system
    speak(system, "telegram")
    wait_for(system, DeliveryDone)

    labels = {
        (name, value)
        for family in text_string_to_metric_families(scraped(live).text)
        for sample in family.samples
        for name, value in sample.labels.items()
    }

    assert {name for name, _ in labels} <= {"agent", "outcome", "code", "reason", "kind", "state", "of", "le"}
    assert not [value for _, value in labels if "agent:" in value or "telegram" in value]


@pytest.mark.clause("VIS-6")
@pytest.mark.parametrize(
    ("access", "token", "status"),
    [
        ("operator", TOKEN, 200),
        ("operator", READER, 403),
        ("operator", "wrong", 401),
        ("read", READER, 200),
        ("read", TOKEN, 200),
        ("off", TOKEN, 404),
    ],
)
def test_who_may_scrape_is_the_settings_to_say(
    live: LiveGateway, access: str, token: str, status: int
) -> None:
    system = live.door.system
    system.reload(merged(SEES_ALL, GATEWAY, QUIET, {"gateway": {"metrics": access}}))

    assert scraped(live, token).status_code == status


def test_every_metric_is_on_the_page_with_its_labels() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(intersession_\w+)` \| ([^|]*)\|", page, re.MULTILINE))
    expected = {f"{name}_total": labels for name, (_, labels) in COUNTERS.items()}
    expected |= {name: labels for name, (_, labels) in GAUGES.items()}

    assert set(rows) == set(expected)
    for name, labels in expected.items():
        assert re.findall(r"(?:^|; )`(\w+)`", rows[name]) == list(labels), name


@pytest.mark.clause("D7")
def test_a_log_that_can_not_be_read_is_told_to_who_scrapes_and_to_who_asks_for_the_status(
    tmp_path: Path,
) -> None:
    """Before: what should raise the alarm failed with the store, and so did `status` and the stop."""
    with (
        SessionSystem(tmp_path / "log.db", agents={"main": parrot}, config=GATEWAY) as system,
        LiveGateway(system) as live,
    ):
        system.inbound(channel="telegram", chat_id="1", sender="p", text="hi", wait=WAIT)
        os.truncate(tmp_path / "log.db-wal", 0)

        status = system.status()
        scrape = scraped(live)

    assert (status["position"], status["store"]["available"]) == (None, False)
    assert "disk I/O error" in status["store"]["error"]
    assert scrape.status_code == 200
    assert values(scrape.text)["intersession_store_available", ""] == 0
    assert ("intersession_log_position", "") not in values(scrape.text)
