"""The page *Hosts*: who works on the log, live, without an event of the log for each look (HOSTS-1)."""

import pytest
from playwright.sync_api import expect

from intersession_events.log.work_queue import Offer, Worker
from support.doors.chromium import WAIT_MS, Tab, chromium, found_by_axe
from support.doors.gateway_live import READER
from support.doors.web_log import played

expect.set_options(timeout=WAIT_MS)
LAID_OVER = """() => {
  const parts = [...document.querySelectorAll('.top a, .top form, .top > button, .top > .proof')]
    .map(one => [one, one.getBoundingClientRect()]).filter(([, at]) => at.width);
  return parts.flatMap(([one, a], number) => parts.slice(number + 1)
    .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
    .map(([other]) => `${one.textContent} on ${other.textContent}`));
}"""
WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.ci
@pytest.mark.timeout(300)
@pytest.mark.clause("HOSTS-1")
def test_hosts_are_shown_as_they_come_take_calls_and_go() -> None:
    with played() as (system, gateway), chromium() as browser:
        system.log.announce_gateway(gateway.address)
        work = system.log.work.to_take
        tab = Tab(browser.new_context(reduced_motion="reduce"), gateway.address)
        tab.come_in()
        page = tab.page
        page.get_by_role("link", name="Hosts", exact=True).click()
        hosts = page.get_by_role("table", name="Hosts of the log")
        expect(hosts.get_by_role("row")).to_have_count(2)
        expect(hosts).to_contain_text(f"with a gateway at {gateway.address}")

        worker = Worker(name="one", host="gpu", version="9", agents={"research": "{}"}, channels={}, seats=2)
        work.announce(worker)
        stream = "session:agent:research:main"
        for run in ("r1", "r2"):
            offer = Offer(
                kind="agent", id=run, attempt=1, name="research", stream=stream, version=1, secret="s"
            )
            system.log.work.offer([offer])
            work.take("one", 1, 0)
        offer = Offer(kind="agent", id="r3", attempt=1, name="research", stream=stream, version=1, secret="s")
        system.log.work.offer([offer])
        served = page.get_by_role("table", name="Calls by agent and channel").get_by_role("row").last
        expect(served).to_contain_text("Agent research120one")
        expect(hosts).to_contain_text("2 of 2 seats taken; research")
        expect(page.get_by_role("heading", name="3 calls, the oldest first")).to_be_visible()
        calls = page.get_by_role("table", name="Calls, the oldest first")
        expect(calls.get_by_role("row")).to_have_count(4)
        expect(calls).to_contain_text("waits")

        before = system.log.head()
        for width in (1280, 1061, 1060, 901, 375):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(LAID_OVER) == []
            assert found_by_axe(page) == []
            assert page.evaluate(WIDE) <= 0
        page.set_viewport_size({"width": 1280, "height": 900})  # a narrow table has no row of headings
        work.leave("one")
        expect(hosts.get_by_role("row")).to_have_count(2)
        expect(calls).to_contain_text("its worker is silent")
        tab.check()
        assert system.log.head() == before


def test_a_limited_credential_is_not_told_of_hosts() -> None:
    with played() as (_, gateway), gateway.http(READER) as client:
        answer = client.get("/debug/api/hosts")

    assert answer.status_code == 403
