"""Every page and deed of the web debugger in a real browser, on a log in a file and on one in PostgreSQL."""

import json
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from support.doors.chromium import WAIT_MS, Tab, chromium, come_in
from support.doors.gateway_live import LiveGateway, newest
from support.doors.web_log import played

expect.set_options(timeout=WAIT_MS)


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.clause("LENS-1", "WHY-1", "FORK-9", "FIND-1")
def test_every_page_and_deed_works_whichever_store_the_log_is_in(log_url: str, tmp_path: Path) -> None:
    with played(store=log_url, hostile=True) as (_, gateway), chromium() as browser:
        context = browser.new_context(
            viewport={"width": 1280, "height": 900}, reduced_motion="reduce", accept_downloads=True
        )
        tab = Tab(context, gateway.address)
        page = tab.page
        come_in(page, gateway.address)
        expect(page.get_by_role("row").filter(has_text="The limit of turns was reached")).to_be_visible()
        tab.wrong.clear()  # the browser says so itself where it is not let in yet
        walked(page, gateway)
        forked(page, gateway)
        noted_and_handed_out(page, gateway, tmp_path)
        tab.check()


def opened(page: Page, gateway: LiveGateway, path: str) -> None:
    page.goto(f"{gateway.address}/debug/{path}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_text("Reading the log…")).to_have_count(0)
    expect(page.get_by_text("This could not be read.")).to_have_count(0)


def walked(page: Page, gateway: LiveGateway) -> None:
    """Open each list and each part of a run, and see on it what the log has."""
    run = newest(gateway)
    lists = {
        "runs?end=turn_limit": "Is the lake crossing open",
        "runs?words=ferry": "Is the lake crossing open",
        "sessions": "Lake crossing: open on Saturday",
        "sessions?at=40": "research",
        "session/agent:research:main": "Up to 3.5 tonnes.",
        "session/agent:main:main?at=30": "Is the lake crossing open",
        "log": "delivery done",
        "log?event=46": "Hash confirmed",
        "log?kind=loop_ended": "turn ended",
        "deliveries": "discord:lab",
        "search?words=ferry": "First said",
        "integrity": "As it was written",
        "settings": "session.agentToAgent.maxPingPongTurns",
        "forks": "No forks of this log yet",
    }
    for path, words in lists.items():
        opened(page, gateway, path)
        expect(page.get_by_role("main")).to_contain_text(words)
    parts = {
        "transcripts": "Up to 3.5 tonnes.",
        "lens": "As recorded",
        "event": "What it changed",
        "why": "Causes, back to",
        "raw": "Hash confirmed",
    }
    for name, words in parts.items():
        opened(page, gateway, f"run/{run}?at=turn:2&tab={name}")
        expect(page.locator(".now b")).to_contain_text("after turn 2: research has answered")
        expect(page.get_by_role("tabpanel")).to_contain_text(words)
    opened(page, gateway, f"run/{run}?view=table")
    expect(page.get_by_role("row").filter(has_text="after 5 turns")).to_be_visible()
    expect(page.locator(".proof")).to_contain_text("Verified")


def forked(page: Page, gateway: LiveGateway) -> None:
    """Fork the run before its second turn, compare both, and find the fork in the list."""
    opened(page, gateway, f"run/{newest(gateway)}?at=turn:2")
    page.keyboard.press("f")
    page.get_by_role("dialog").get_by_label("What is said instead").fill("Only up to 2.8 tonnes.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("svg.dg")).to_contain_text("B was cut after")
    expect(page.get_by_label("What differs").locator("ins").filter(has_text="2.8")).to_be_visible()
    expect(page.locator(".proof")).to_contain_text("Verified, both")
    opened(page, gateway, "forks")
    expect(page.get_by_role("row").filter(has_text="2.8 tonnes")).to_be_visible()


def noted_and_handed_out(page: Page, gateway: LiveGateway, folder: Path) -> None:
    """Pin a note to a place, and take the run away as a bundle that has it."""
    opened(page, gateway, f"run/{newest(gateway)}?at=turn:4")
    page.keyboard.press("N")
    page.get_by_role("dialog").get_by_role("textbox").fill("It never tells Ada.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("What happened")).to_contain_text("It never tells Ada.")
    page.keyboard.press("s")
    with page.expect_download() as coming:
        page.get_by_role("dialog").get_by_role("link", name="Bundle for an auditor").click()
    coming.value.save_as(folder / "bundle.zip")
    with zipfile.ZipFile(folder / "bundle.zip") as bundle:
        assert "It never tells Ada." in bundle.read("notes.json").decode()
        assert {"manifest.json", "log.db", "run.svg", "proof.json"} <= set(bundle.namelist())
    assert b'"specversion":"1.0"' in exported(page, folder, "events (CloudEvents)")
    opened(page, gateway, "session/agent:main:main")
    page.get_by_role("button", name="File").click()
    assert json.loads(exported(page, folder, "messages (Anthropic)"))["messages"]


def exported(page: Page, folder: Path, form: str) -> bytes:
    """Take the export of a form that the open dialog offers."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("The export has").select_option(form)
    with page.expect_download() as coming:
        dialog.get_by_role("link", name="Export for other tools").click()
    coming.value.save_as(folder / "export")
    return (folder / "export").read_bytes()
