"""What a page does when the world around it changes: the server goes and comes, a tab is left, a way back is taken."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from intersession import SessionSystem, Turn
from support.doors.chromium import WAIT_MS, Tab, chromium, come_in
from support.doors.gateway_live import GATEWAY, READER, TOKEN, LiveGateway, newest
from support.doors.web_log import played
from support.running import SEES_ALL, Gate, merged

expect.set_options(timeout=WAIT_MS)


def entered(browser: Browser, address: str, token: str = TOKEN) -> Page:
    page = browser.new_context(reduced_motion="reduce").new_page()
    page.goto(address)
    come_in(page, token=token)
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    return page


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_a_page_outlives_its_server_and_a_new_one_lets_in_at_the_same_place() -> None:
    with played() as (system, first), chromium() as browser:
        page = entered(browser, first.address)
        page.goto(f"{first.address}/debug/run/{newest(first)}?at=turn:2")
        now = page.locator(".now")
        expect(now).to_contain_text("after turn 2")

        first.__exit__(None, None, None)
        expect(page.get_by_text("no answer since")).to_be_visible()
        # What was not read yet is asked for again, and nothing that is shown is taken away.
        page.keyboard.press("p")
        expect(now).to_contain_text("#")
        expect(page.get_by_text("This could not be read.")).to_have_count(0)
        expect(page.locator("svg.dg")).to_be_visible()

        with LiveGateway(system, port=first.port) as second:
            assert second.address == first.address
            # It knows no cookie of the one before.
            expect(page.get_by_label("Token")).to_be_visible()
            come_in(page)
            expect(now).to_contain_text("after turn 1")
            expect(page.get_by_label("Transcript of main")).to_contain_text("Does that hold for a van")


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_what_somebody_has_typed_outlives_a_server_that_is_gone_and_the_login_to_the_next(
    tmp_path: Path,
) -> None:
    with played(store=tmp_path / "played.db") as (system, first), chromium() as browser:
        page = entered(browser, first.address)
        page.goto(f"{first.address}/debug/run/{newest(first)}?at=turn:2")
        expect(page.locator(".now")).to_contain_text("after turn 2")
        page.keyboard.press("f")
        fork = page.get_by_role("dialog", name="Fork here")
        fork.get_by_label("Who answers from there").select_option("script")
        fork.get_by_label("Replies, one a line").fill("So be it.\nANNOUNCE_SKIP")

        first.__exit__(None, None, None)
        expect(page.get_by_text("no answer since")).to_be_attached()
        fork.get_by_role("button", name="Make the fork").click()
        expect(fork.get_by_role("alert")).to_contain_text("The server does not answer")
        expect(fork.get_by_label("Replies, one a line")).to_have_value("So be it.\nANNOUNCE_SKIP")

        with LiveGateway(system, port=first.port):
            expect(page.get_by_label("Token")).to_be_visible()
            come_in(page)
            expect(fork.get_by_label("Who answers from there")).to_have_value("script")
            expect(fork.get_by_label("Replies, one a line")).to_have_value("So be it.\nANNOUNCE_SKIP")
            fork.get_by_role("button", name="Make the fork").click()
            expect(page.get_by_role("heading", name="and its fork")).to_be_visible()

            # What one person has begun to write is not shown to another one.
            page.goto(f"{first.address}/debug/run/{newest(first)}")
            expect(page.get_by_role("slider")).to_be_visible()
            page.keyboard.press("N")
            page.get_by_role("dialog", name="Pin a note here").get_by_role("textbox").fill("For me alone")
            page.context.clear_cookies()
            page.keyboard.press(
                "Control+Enter"
            )  # by a key: the page may have seen already that it is let in no more
            come_in(page, token=READER)
            expect(page.get_by_role("slider")).to_be_visible()
            expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_who_leaves_in_one_tab_is_out_in_all_and_the_way_back_undoes_a_filter() -> None:
    with played() as (_, gateway), chromium() as browser:
        page = entered(browser, gateway.address)
        rows = page.locator("tbody tr:not(.day)")
        expect(rows).not_to_have_count(1)
        page.get_by_label("How it ended").select_option("turn_limit")
        expect(rows).to_have_count(1)
        rows.get_by_role("link").click()
        expect(page.get_by_role("slider")).to_be_visible()
        page.go_back()
        expect(page.get_by_label("How it ended")).to_have_value("turn_limit")
        page.go_back()
        expect(page.get_by_label("How it ended")).to_have_value("")
        expect(rows).not_to_have_count(1)
        page.go_forward()
        expect(rows).to_have_count(1)

        other = page.context.new_page()
        other.goto(f"{gateway.address}/debug/sessions")
        other.get_by_role("button", name="Leave").click()
        expect(other.get_by_label("Token")).to_be_visible()
        page.get_by_role("link", name="Log", exact=True).click()
        expect(page.get_by_label("Token")).to_be_visible()


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_a_link_shows_whoever_may_see_less_what_they_may_see_and_says_what_they_may_not() -> None:
    with played() as (_, gateway), chromium() as browser:
        page = entered(browser, gateway.address, READER)
        seen: Callable[[], str] = page.get_by_role("main").inner_text
        page.goto(f"{gateway.address}/debug/run/{newest(gateway)}?at=turn:2&tab=why")
        expect(page.get_by_role("slider")).to_be_visible()
        expect(page.get_by_role("button", name="Fork here")).to_have_count(0)
        assert "Post what you find out in here" not in seen()
        for path in ("integrity", "settings", "forks"):
            page.goto(f"{gateway.address}/debug/{path}")
            expect(page.get_by_role("alert")).to_contain_text("This credential sees a part of the log only.")
        page.goto(f"{gateway.address}/debug/session/agent:research:main")
        expect(page.get_by_role("alert")).to_contain_text("This could not be read.")
        page.get_by_role("link", name="All runs").click()
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()

        # A session that leaves the list while it is looked at stays readable, and says so.
        operator = entered(browser, gateway.address)
        with gateway.http() as client:
            found = client.get("/debug/api/sessions", params={"search": "subagent"}).json()
            child = found["sessions"][0]["canonical"]
        operator.goto(f"{gateway.address}/debug/session/{child}")
        expect(operator.get_by_text("idle")).to_be_visible()
        with gateway.client() as wire:
            wire.request("sessions.delete", {"key": child})
        expect(operator.get_by_text("off the list: it was deleted")).to_be_visible()


def asks_research(turn: Turn) -> str:
    asked = {"sessionKey": "agent:research:main", "message": "Is it open?", "timeoutSeconds": 0}
    turn.tools.call("sessions_send", asked)
    return "I have asked."


@pytest.mark.nightly
def test_an_open_run_keeps_names_as_they_are_and_its_dot_inside_its_outline(tmp_path: Path) -> None:
    """The list said "Main is at turn 1" of a session called `main`, and a narrow screen cut the dot."""
    gate = Gate()
    agents = {"main": asks_research, "research": gate.saying("Until eight.")}
    with (
        SessionSystem(tmp_path / "log.db", agents=agents, config=merged(SEES_ALL, GATEWAY)) as system,
        LiveGateway(system) as gateway,
    ):
        system.gateway.call("agent", {"message": "go", "sessionKey": "main", "idempotencyKey": "k"})
        gate.reached()
        with gateway.http() as client:
            (run,) = client.get("/debug/api/runs", params={"kind": "exchange"}).json()["runs"]
        with chromium() as browser:
            tab = Tab(browser.new_context(viewport={"width": 375, "height": 812}), gateway.address)
            come_in(tab.page, gateway.address)
            row = tab.page.get_by_role("row").filter(has_text=run["told"])
            expect(row).to_be_visible()
            cut = row.locator(".live").evaluate(
                "dot => dot.getBoundingClientRect().right - dot.ownerSVGElement.getBoundingClientRect().right"
            )
        gate.open()

    assert run["told"].startswith("research ")
    assert cut <= 0
