"""The web debugger while its store is away: pages say so, keep what they show, and go on by themselves."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from intersession.web.happened import StoreNews, all_news
from support.doors.chromium import WAIT_MS, Tab, chromium, come_in
from support.doors.gateway_live import newest
from support.doors.web_log import played
from support.postgres.server import Server, postgres_server

expect.set_options(timeout=WAIT_MS)


def test_a_page_is_told_once_that_the_store_is_away_and_once_that_it_is_back() -> None:
    away = False
    store = StoreNews(lambda: away)

    def told() -> bytes | None:
        return all_news(store.news, lambda: None)

    assert told() is None
    away = True
    assert told() == b'event: store\ndata: {"available":false}\n\n'
    assert told() is None
    away = False
    assert told() == b'event: store\ndata: {"available":true}\n\n'
    assert told() is None


@pytest.fixture
def server() -> Iterator[Server]:
    with postgres_server() as started:
        yield started


@pytest.mark.nightly
@pytest.mark.postgres
@pytest.mark.timeout(300)
def test_pages_outlive_a_server_that_is_away_and_go_on_when_it_is_back(server: Server) -> None:
    """One that was opened meanwhile stayed at an error, and the others said that they were live."""
    with played(store=server.url) as (_, gateway):
        run = newest(gateway)
        with chromium() as browser:
            context = browser.new_context(reduced_motion="reduce")
            page = Tab(context, gateway.address).page
            come_in(page, gateway.address)
            page.goto(f"{gateway.address}/debug/run/{run}?at=turn:2")
            expect(page.get_by_role("main")).to_contain_text("Up to 3.5 tonnes.")
            expect(page.get_by_role("contentinfo")).to_contain_text("live")
            server.stop()

            later = context.new_page()
            later.goto(f"{gateway.address}/debug/log")
            expect(later.get_by_role("heading", level=1)).to_have_text("The log can't be read now")
            expect(later.get_by_role("status")).to_contain_text("tried again by itself")
            expect(page.get_by_role("contentinfo")).to_contain_text("the log can't be read since")
            expect(page.get_by_role("main")).to_contain_text("Up to 3.5 tonnes.")

            server.start()
            for shown, name in ((later, "Log"), (page, "Is the lake crossing open on Saturday?")):
                expect(shown.get_by_role("heading", level=1)).to_have_text(name)
                expect(shown.get_by_role("contentinfo")).to_contain_text("live")
