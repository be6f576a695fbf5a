"""The web debugger in a real browser: pages, keys, deep links, screen readers, hostile texts. One browser, one log."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, expect

from support.doors.chromium import WAIT_MS, Tab, chromium, found_by_axe
from support.doors.gateway_live import newest
from support.doors.web_log import HOSTILE, played, seen

expect.set_options(timeout=WAIT_MS)


class Debugger(NamedTuple):
    """A browser that is in, and the runs of the log."""

    browser: Browser
    tab: Tab
    address: str
    exchange: str
    send: Callable[[str], None]

    def open(self, path: str, width: int = 1280) -> None:
        self.tab.page.set_viewport_size({"width": width, "height": 900})
        self.tab.page.goto(f"{self.address}/debug/{path}")

    def axe(self) -> list[str]:
        """Return what axe finds on the page, in both colour schemes."""
        return found_by_axe(self.tab.page)


@pytest.fixture(scope="module")
def debugger() -> Iterator[Debugger]:
    with played(hostile=True) as (system, gateway), chromium() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        tab = Tab(context, gateway.address)
        tab.come_in()
        exchange = newest(gateway)

        def send(text: str) -> None:
            # In a thread of its own: Playwright has a loop in this one.
            told: dict[str, Any] = {
                "channel": "telegram",
                "chat_id": "ada",
                "sender": "ada",
                "agent_id": "main",
            }
            with ThreadPoolExecutor(1) as thread:
                thread.submit(system.inbound, text=text, wait=20, **told).result()

        yield Debugger(browser, tab, gateway.address, exchange, send)


@pytest.mark.ci
@pytest.mark.timeout(240)
def test_a_run_is_found_stepped_explained_and_read_back_from_its_link(debugger: Debugger) -> None:
    """One test, because each browser that is started takes seconds."""
    page, tab = debugger.tab.page, debugger.tab

    # The list: one row a run, filters in the address.
    debugger.open("runs")
    row = page.get_by_role("row").filter(has_text="The limit of turns was reached")
    expect(row).to_match_aria_snapshot("""
      - row /Is the lake crossing open on Saturday\\?/:
        - cell /Is the lake crossing open on Saturday/:
          - link "Is the lake crossing open on Saturday?"
        - cell /\\d+ steps/
        - cell "The limit of turns was reached announced"
        - cell "cut by a limit"
        - cell "5"
        - cell
        - cell
    """)
    page.get_by_label("How it ended").select_option("turn_limit")
    expect(page.locator("tbody tr:not(.day)")).to_have_count(1)
    assert "end=turn_limit" in page.url
    assert debugger.axe() == []
    page.keyboard.press("j")
    page.keyboard.press("Enter")

    # The run, by its keys: everything moves with the one place.
    slider = page.get_by_role("slider", name="Place in the run")
    expect(slider).to_be_visible()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("n")
    expect(slider).to_have_attribute(
        "aria-valuetext", re.compile("^after turn 2: research has answered, main has not yet")
    )
    research = page.get_by_label("Transcript of research")
    expect(research).to_contain_text("Up to 3.5 tonnes. Above that it is the northern road.")
    expect(page.get_by_label("Transcript of main")).not_to_contain_text("And if the wind picks up again?")
    expect(page.locator("svg.dg text.lab.future").first).to_be_visible()
    page.keyboard.press("w")
    expect(page.get_by_role("tabpanel")).to_contain_text("Causes, back to")
    assert debugger.axe() == []

    # The link leads back to exactly this, in a tab of its own.
    page.wait_for_url("**at=*")
    link = page.url
    page.goto(link)
    expect(page.get_by_role("tab", name="Why")).to_have_attribute("aria-selected", "true")
    expect(slider).to_have_attribute(
        "aria-valuetext", re.compile("^after turn 2: research has answered, main has not yet")
    )
    page.get_by_role("tab", name="Prompts").click()
    # At an answer, what its speaker had been given comes first, as `lens RUN@turn:2` has it; then whoever is asked next.
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text("What research was given, attempt 1")
    expect(panel).to_contain_text("As recorded")
    expect(panel.locator(".msg.here")).to_contain_text("Does that hold for a van of 3.2 tonnes")
    panel.get_by_role("button", name="What main is given next").click()
    expect(panel).to_contain_text("What main is about to be given, attempt 1")
    expect(panel.locator(".msg.here")).to_contain_text("Up to 3.5 tonnes")
    page.keyboard.press("L")
    expect(panel).to_contain_text("What research was given, attempt 1")
    page.get_by_role("button", name=re.compile("^All \\d+ events$")).click()
    expect(page.get_by_role("table").get_by_role("row").filter(has_text="turn_limit")).to_have_count(1)

    # What anybody wrote is text.
    debugger.open("session/agent:main:main")
    transcript = page.get_by_label("Transcript", exact=True)
    expect(transcript).to_contain_text("alert(1)")
    for text in HOSTILE:
        shown = transcript.locator("p").evaluate_all(
            "(all, text) => all.some(one => one.textContent === text)", seen(text)
        )
        assert shown, text
    assert page.locator("#app script, #app img, #app iframe, #app [onerror]").count() == 0
    tab.check()


@pytest.mark.clause("PLACE-1", "LENS-1", "WHY-1")
@pytest.mark.timeout(240)
def test_an_answer_leads_to_its_turn_to_what_its_speaker_was_given_and_to_what_it_changed(
    debugger: Debugger,
) -> None:
    page, panel = debugger.tab.page, debugger.tab.page.get_by_role("tabpanel")
    slider = page.get_by_role("slider", name="Place in the run")
    after_turn_2 = re.compile("^after turn 2: research has answered, main has not yet")
    debugger.open(f"run/{debugger.exchange}?at=start", width=1440)
    expect(slider).to_have_attribute("aria-valuetext", re.compile("^after the start"))

    # Its arrow leads to the turn, and the address names it so.
    page.locator("svg.dg g.row").filter(has_text="turn 2").first.click()
    expect(slider).to_have_attribute("aria-valuetext", after_turn_2)
    page.wait_for_url("**at=turn:2*")

    # Its message, and the bar of whoever was at work for it, lead to what that one had been given.
    research = page.get_by_label("Transcript of research")
    said = research.locator(".msg").filter(has_text="Up to 3.5 tonnes")
    said.get_by_role("button", name="prompt").click()
    expect(panel).to_contain_text("What research was given, attempt 1")
    expect(panel.locator(".msg.here")).to_contain_text("Does that hold for a van of 3.2 tonnes")
    page.keyboard.press("Home")
    page.keyboard.press("t")
    page.locator("svg.dg g.given").filter(has_text="What research was given").nth(1).click()
    expect(panel).to_contain_text("What research was given, attempt 1")
    expect(panel.locator(".msg.here")).to_contain_text("Does that hold for a van of 3.2 tonnes")

    # What a message changed is the transcript that it came to.
    debugger.open(f"run/{debugger.exchange}?at=turn:2&tab=event")
    expect(slider).to_have_attribute("aria-valuetext", after_turn_2)
    page.keyboard.press("ArrowRight")
    expect(panel).to_contain_text("run queued")
    changed = panel.get_by_role("row").filter(has_text="main · message")
    expect(changed).to_contain_text("research says: Up to 3.5 tonnes. Above that it is the northern road.")

    # Why it was said: each text once on the way back.
    debugger.open(f"run/{debugger.exchange}?at=turn:2&tab=why")
    chain = panel.locator("ol.chain li")
    expect(chain).to_have_count(5)
    expect(chain.filter(has_text="Does that hold for a van of 3.2 tonnes")).to_have_count(1)
    expect(chain.filter(has_text="Yes: the ferry runs from 07:00")).to_have_count(1)
    debugger.tab.check()


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_every_page_is_readable_for_everybody_and_asks_nothing_elsewhere(debugger: Debugger) -> None:
    page, tab = debugger.tab.page, debugger.tab
    pages = [
        "runs",
        f"run/{debugger.exchange}?at=turn:2",
        f"run/{debugger.exchange}?tab=event",
        f"run/{debugger.exchange}?tab=lens",
        f"run/{debugger.exchange}?tab=raw&view=table",
        "sessions",
        "session/agent:main:main",
        "log?at=20",
        "deliveries",
        "person/telegram:ada",
        "forks",
        f"diff?a={debugger.exchange}@turn:2&b={debugger.exchange}",
        "hosts",
        "integrity",
        "schedules",
        "settings",
        "search?words=ferry",
        "nowhere",
    ]
    found: dict[str, list[str]] = {}
    for path in pages:
        for width in (1280, 375):
            debugger.open(path, width=width)
            expect(page.get_by_role("main")).to_be_visible()
            page.wait_for_load_state("domcontentloaded")
            expect(page.get_by_text("Reading the log…")).to_have_count(0)
            found[f"{path} at {width}"] = debugger.axe()
            wide = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert wide <= 0, f"{path} at {width} scrolls sideways by {wide}"
    assert {path: wrong for path, wrong in found.items() if wrong} == {}
    tab.check()


@pytest.mark.ci
@pytest.mark.clause("ANS-1", "ANS-3")
def test_a_persons_name_leads_to_what_they_were_told_and_a_search_to_who_saw_it(debugger: Debugger) -> None:
    page = debugger.tab.page
    debugger.open("deliveries")
    page.get_by_role("link", name="telegram:ada").first.click()
    expect(page.get_by_role("heading", name="What telegram:ada was told")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="Is the lake crossing open on Saturday?")).to_contain_text(
        "Delivered"
    )
    debugger.open("session/agent:main:main")
    expect(page.get_by_role("link", name="ada", exact=True).first).to_have_attribute(
        "href", re.compile("/debug/person/telegram:ada")
    )
    debugger.open("search?words=ferry")
    page.get_by_role("button", name="Who saw it?").click()
    expect(page.get_by_role("heading", name=re.compile(r"^Given to \d+ runs"))).to_be_visible()
    expect(page.get_by_role("heading", name=re.compile("^Sent to"))).to_be_visible()
    debugger.tab.check()


@pytest.mark.ci
def test_a_key_behind_the_one_that_closes_a_window_opens_the_next(debugger: Debugger) -> None:
    """A window is closed a frame before it says so; a key of that frame opened nothing, and the word of it closed the next window."""
    page = debugger.tab.page
    debugger.open(f"run/{debugger.exchange}")
    expect(page.get_by_role("slider")).to_be_visible()
    page.keyboard.press("g")
    page.get_by_role("dialog", name="Go to a place").get_by_role("textbox").fill("what was never sent")
    page.evaluate("""async () => {
      const dialog = document.querySelector('dialog');
      const closed = new Promise(done => dialog.addEventListener('close', done));
      dialog.close();
      dialog.querySelector('input').dispatchEvent(new KeyboardEvent('keydown', {key: 'b', bubbles: true}));
      await closed;
    }""")
    following = page.get_by_role("dialog", name="Break on")
    expect(following.get_by_role("textbox")).to_have_value("")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)

    # Whoever closes a window is where they were before it, whichever way it is closed.
    note = page.get_by_role("button", name="Note")
    for close in ("Escape", "Cancel"):
        note.press("Enter")
        expect(page.get_by_role("dialog", name="Pin a note here")).to_be_visible()
        if close == "Cancel":
            page.get_by_role("button", name="Cancel").press("Enter")
        else:
            page.keyboard.press(close)
        expect(note).to_be_focused()
    debugger.tab.check()


@pytest.mark.nightly
def test_what_comes_into_a_list_takes_away_nothing_that_somebody_reads(debugger: Debugger) -> None:
    page = debugger.tab.page
    debugger.open("runs")
    rows = page.locator("tbody tr:not(.day)")
    expect(rows.first).to_be_visible()
    known = rows.count()
    for _ in range(3):
        page.keyboard.press("j")
    chosen = rows.nth(2)
    expect(chosen).to_have_attribute("aria-selected", "true")
    chosen.get_by_role("link").focus()
    chosen.evaluate("row => { row.isMine = true }")
    page.set_viewport_size({"width": 1280, "height": 480})
    page.get_by_role("main").evaluate("main => main.scrollTo(0, 260)")
    where = chosen.bounding_box()
    debugger.send("Who comes in between?")
    expect(rows.first).to_contain_text("Who comes in between?")
    expect(rows).to_have_count(known + 1)
    chosen = rows.nth(3)
    assert chosen.evaluate("row => row.isMine && row.contains(document.activeElement)")
    expect(chosen).to_have_attribute("aria-selected", "true")
    assert where is not None
    now = chosen.bounding_box()
    assert now is not None
    assert abs(where["y"] - now["y"]) < 2

    debugger.open("log")
    older = page.get_by_role("button", name="Show older")
    expect(older).to_be_visible()
    page_of = rows.count()
    older.click()
    expect(rows).not_to_have_count(page_of)
    read_on, last = rows.count(), rows.last.inner_text()
    debugger.send("And who now?")
    expect(rows.filter(has_text="And who now?").first).to_be_visible()
    assert rows.count() > read_on
    assert rows.last.inner_text() == last
    debugger.tab.check()


@pytest.mark.nightly
def test_what_comes_is_shown_as_it_comes(debugger: Debugger) -> None:
    debugger.open("runs")
    rows = debugger.tab.page.locator("tbody tr:not(.day)")
    expect(rows.first).to_be_visible()
    known = rows.count()

    debugger.send("And on Sunday?")

    expect(rows).to_have_count(known + 1)
    expect(rows.first).to_contain_text("And on Sunday?")
    debugger.tab.check()


@pytest.mark.nightly
def test_receipts_of_looks_are_in_the_log_for_whoever_asks_for_them(debugger: Debugger) -> None:
    page = debugger.tab.page
    debugger.open("log?until=60")
    receipts = page.get_by_role("row").filter(has_text="access recorded")
    switch = page.get_by_role("button", name="with receipts of who looked")
    expect(page.locator("tbody tr").first).to_be_visible()
    expect(receipts).to_have_count(0)
    debugger.open("log")
    expect(page.get_by_text("without receipts of who looked")).to_be_visible()
    expect(receipts).to_have_count(0)
    switch.click()
    expect(receipts.first).to_be_visible()
    expect(switch).to_have_attribute("aria-pressed", "true")
    assert "receipts=true" in page.url
    page.reload()
    expect(receipts.first).to_be_visible()
    switch.click()
    expect(receipts).to_have_count(0)
    debugger.tab.check()


@pytest.mark.nightly
def test_below_a_prefix_and_with_a_place_that_is_none_it_says_what_there_is(
    debugger: Debugger, tmp_path: Path
) -> None:
    del tmp_path
    page = debugger.tab.page
    debugger.open(f"run/{debugger.exchange}?at=turn:9")
    expect(page.get_by_role("alert")).to_contain_text("turn:9")
    page.keyboard.press("g")
    page.get_by_role("dialog").get_by_role("textbox").fill("turn:1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("slider")).to_have_attribute(
        "aria-valuetext", re.compile("^after turn 1: main has answered, research has not yet")
    )
    page.keyboard.press("b")
    page.get_by_role("dialog").get_by_role("textbox").fill("kind:exchange_closed")
    page.keyboard.press("Enter")
    page.keyboard.press("r")
    expect(page.locator(".now")).to_contain_text("after the end")
    page.keyboard.press("R")
    expect(page.locator(".now")).to_contain_text("before the first event")
    # A link that has lost its end, or names what is none, says so; a search without words is none.
    for path, named in (
        ("run/%E0%A4%A", "'%E0%A4%A'"),
        ("run/a%23b%3Fc%25", "'a#b?c%'"),
        ("session/agent:x:y", "agent:x:y"),
    ):
        debugger.open(path)
        expect(page.get_by_role("alert")).to_contain_text(named)
        expect(page.get_by_text("This credential sees a part")).to_have_count(0)
    debugger.open("search")
    expect(page.get_by_role("heading", name="What do you look for?")).to_be_visible()
    assert debugger.axe() == []
    debugger.tab.wrong.clear()  # the browser tells of the refused place by itself
