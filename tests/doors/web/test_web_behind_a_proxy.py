"""The web debugger behind a reverse proxy that puts it below a path: pages, questions, login, what comes live, and files."""

import pytest
from playwright.sync_api import expect

from support.doors.chromium import WAIT_MS, Tab, chromium, come_in
from support.doors.proxied import PREFIX, proxied
from support.doors.web_log import played

expect.set_options(timeout=WAIT_MS)


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_below_a_prefix_of_a_proxy_all_of_it_works_and_nothing_is_asked_beside_the_prefix() -> None:
    origin = "http://127.0.0.1"
    with (
        played() as (_, gateway),
        proxied(int(gateway.address.rpartition(":")[2])) as proxy,
        chromium() as browser,
    ):
        address = f"{origin}:{proxy.port}{PREFIX}"
        context = browser.new_context(reduced_motion="reduce")
        tab = Tab(context, f"{origin}:{proxy.port}")
        page = tab.page
        come_in(page, f"{address}/")
        row = page.get_by_role("row").filter(has_text="The limit of turns was reached")
        expect(row).to_be_visible()
        tab.wrong.clear()  # the browser says so itself where it is not let in yet
        assert page.url.startswith(f"{address}/debug/")
        row.get_by_role("link").click()
        expect(page.get_by_role("slider", name="Place in the run")).to_be_visible()
        expect(page.locator(".status")).to_contain_text("live")
        page.goto(page.url)
        expect(page.get_by_role("slider", name="Place in the run")).to_be_visible()
        page.get_by_role("link", name="Sessions").click()
        expect(page.get_by_role("row").filter(has_text="research")).to_be_visible()
        (cookie,) = context.cookies()

        assert cookie["httpOnly"]
        assert proxy.outside == []
        tab.check()
