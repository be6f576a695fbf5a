"""How the pages of the web debugger lie on screens of every width: nothing vanishes, overlaps, or is out of reach."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, expect

from intersession_events.facts import ForkEdit
from support.doors.chromium import WAIT_MS, Tab, chromium, found_by_axe
from support.doors.gateway_live import newest
from support.doors.web_log import played

expect.set_options(timeout=WAIT_MS)
WIDTHS = (375, 600, 768, 901, 1024, 1280, 1920, 3840)
NARROW = (375, 812)
TABS = ("lens", "event", "why", "raw")

# Texts of a page that are drawn in less room than a word takes, or lie outside of what can be scrolled to.
SQUEEZED = """() => [...document.querySelectorAll('main td .t, main td.all, main h1, main .lane b')]
  .filter(one => one.textContent.trim().length > 4 && one.offsetParent !== null)
  .filter(one => one.getBoundingClientRect().width < 24 || one.getBoundingClientRect().right > innerWidth + 1)
  .map(one => one.textContent.trim().slice(0, 40))"""
OVERLAPPING = """() => {
  const heads = [...document.querySelectorAll('.lanes .lane')].map(one => [one, one.getBoundingClientRect()]);
  return heads.flatMap(([one, a], number) => heads.slice(number + 1)
    .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1)
    .map(([other]) => `${one.textContent} on ${other.textContent}`));
}"""
WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Served(NamedTuple):
    browser: Browser
    tab: Tab
    address: str
    run: str
    spawn: str
    fork: str

    def open(self, path: str, width: int = 1280, height: int = 900) -> None:
        self.tab.page.set_viewport_size({"width": width, "height": height})
        self.tab.page.goto(f"{self.address}/debug/{path}")
        expect(self.tab.page.get_by_role("main")).to_be_visible()
        expect(self.tab.page.get_by_text("Reading the log…")).to_have_count(0)

    def asked(self, script: str) -> Any:  # Any: what a script gives
        return self.tab.page.evaluate(script)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    store = tmp_path_factory.mktemp("layout") / "demo.db"
    with played(store=store) as (system, gateway):
        run, spawn = newest(gateway, "exchange"), newest(gateway, "spawn")
        edits = [ForkEdit(kind="reply", value="Only up to 2.8 tonnes this week.")]
        fork = system.fork(run, at="turn:2", edits=edits, agents={"main": "main", "research": "research"})
        try:
            fork.carried_on(timeout=20)
        finally:
            fork.close(grace=0)
        with chromium() as browser:
            context = browser.new_context(reduced_motion="reduce")
            tab = Tab(context, gateway.address)
            tab.come_in()
            yield Served(browser, tab, gateway.address, run, spawn, fork.log.log_id)


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_nothing_is_squeezed_out_of_a_page_at_any_width(served: Served) -> None:
    """The words of the runs had no room at all at 768 pixels, and heads of lanes lay on each other."""
    pages = [
        "runs",
        "sessions",
        "log?event=20",
        "deliveries",
        "person/telegram:ada",
        "forks",
        "hosts",
        "search?words=ferry",
        "settings",
    ]
    pages += [f"run/{served.run}?at=turn:2", f"run/{served.run}?view=table", "session/agent:main:main"]
    refused = ["run/nothing", "session/agent:main:main?at=noon"]
    pages += [f"run/{served.spawn}", *refused]
    pages += [f"run/{served.run}?at={at}&tab={tab}" for at in ("turn:2", "end") for tab in TABS]
    pages += [f"diff?a={served.run}&b={served.run}&other={served.fork}", "integrity"]
    found: dict[str, Any] = {}
    for width in WIDTHS:
        for path in pages:
            served.open(path, width)
            wrong = [*served.asked(SQUEEZED), *served.asked(OVERLAPPING)]
            if (wide := served.asked(WIDE)) > 0:
                wrong.append(f"scrolls sideways by {wide}")
            if wrong:
                found[f"{path} at {width}"] = wrong
            if path in refused:  # the browser tells of a refused question by itself
                told = served.tab.wrong
                told[:] = [one for one in told if "400 (Bad Request)" not in one]
    assert found == {}
    served.tab.check()


@pytest.mark.nightly
def test_on_a_narrow_screen_every_page_and_filter_is_two_touches_away(served: Served) -> None:
    page = served.tab.page
    served.open("runs", *NARROW)
    menu = page.get_by_role("button", name="Pages: Runs")
    pages = page.get_by_role("navigation", name="Pages")
    expect(pages).to_be_hidden()
    menu.click()
    for name in ("Runs", "Sessions", "Log", "Deliveries", "Forks", "Integrity", "Settings"):
        expect(pages.get_by_role("link", name=name)).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    expect(pages).to_be_hidden()
    expect(menu).to_be_focused()
    menu.click()
    pages.get_by_role("link", name="Deliveries").click()
    expect(page.get_by_role("heading", name="Deliveries and failures")).to_be_visible()
    expect(pages).to_be_hidden()

    # What filters is folded, and what is filtered by is not.
    served.open("runs?end=turn_limit", *NARROW)
    expect(page.get_by_label("How it ended")).to_be_hidden()
    expect(page.get_by_role("button", name="end turn_limit")).to_be_in_viewport()
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page.get_by_label("How it ended")).to_have_value("turn_limit")
    served.tab.check()


@pytest.mark.nightly
def test_on_a_narrow_screen_one_of_two_runs_is_drawn_whole_and_the_event_that_is_chosen_is_in_sight(
    served: Served,
) -> None:
    page = served.tab.page
    served.open(f"diff?a={served.run}&b={served.run}&other={served.fork}", *NARROW)
    drawn = page.locator("svg.dg")
    expect(drawn).to_contain_text("Only up to 2.8 tonnes")
    expect(drawn).not_to_contain_text("Up to 3.5 tonnes")
    box = drawn.bounding_box()
    assert box is not None
    assert box["width"] <= NARROW[0]
    page.get_by_role("group", name="Which one is drawn").get_by_role("button", name="A", exact=True).click()
    expect(drawn).to_contain_text("Up to 3.5 tonnes")

    served.open("log?until=40", *NARROW)
    page.get_by_role("button", name="#20", exact=True).click()
    expect(page.get_by_role("complementary", name="Event")).to_be_in_viewport()
    page.wait_for_url("**event=20*")
    served.open("log?until=45", 1280, 500)
    page.get_by_role("button", name="#3", exact=True).click()
    expect(page.get_by_role("heading", name="#3 session_opened.1")).to_be_in_viewport()
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("complementary", name="Event")).to_have_count(0)
    served.tab.check()


@pytest.mark.nightly
def test_a_long_transcript_shows_what_was_said_last_and_folds_what_is_earlier(served: Served) -> None:
    page = served.tab.page
    for width, height in ((1280, 500), (375, 500)):
        served.open(f"run/{served.run}", width, height)
        messages = page.get_by_label("Transcript of main").locator(".msg")
        if not messages.count():
            page.get_by_role("group", name="Whose transcript").get_by_role("button", name="main").click()
        expect(messages.first).to_be_attached()
        far = messages.last.evaluate(
            """one => { const box = one.closest('.msgs');
                 return one.getBoundingClientRect().bottom - box.getBoundingClientRect().bottom; }"""
        )
        assert far <= 1, f"at {width} the last message lies {far} below what is seen"
    served.tab.check()


@pytest.mark.nightly
def test_the_words_of_a_message_take_two_lines_where_they_need_them(served: Served) -> None:
    """They were cut in the middle of a word, with an empty lane beside them."""
    page = served.tab.page
    long = "Yes: the ferry runs from 07:00, and the bridge is open."
    drawn: list[int] = []
    for width in (375, 1440, 3840):
        served.open(f"run/{served.run}", width, 1200)
        words = page.locator("svg.dg text.lab").filter(has_text="Yes: the ferry").first
        expect(words).to_have_text(long)
        lines = words.locator("tspan").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect().bottom)"
        )
        arrow = page.locator("svg.dg .row").filter(has_text="Yes: the ferry").first.locator("line.arr")
        under = arrow.evaluate("one => one.getBoundingClientRect().top")
        drawn.append(len(lines))
        assert sorted(lines) == lines
        assert all(bottom < under for bottom in lines), f"at {width} words lie on their arrow"
    assert 2 in drawn, "they had room for one line everywhere"
    served.tab.check()


@pytest.mark.nightly
def test_what_is_printed_has_all_that_is_to_be_filed_once(served: Served) -> None:
    page = served.tab.page
    try:
        page.emulate_media(media="print")
        served.open(f"diff?a={served.run}&b={served.run}&other={served.fork}")
        expect(page.get_by_label("What differs").locator("ins").first).to_have_text("Only up")
        expect(page.get_by_label("What differs")).to_be_visible()
        served.open(f"run/{served.run}")
        expect(page.locator(".paper")).to_contain_text("As it was written")
        expect(page.locator(".paper table")).to_be_visible()
        expect(page.locator(".run .notes:visible")).to_have_count(0)
    finally:
        page.emulate_media(media="screen")
    served.tab.check()


@pytest.mark.nightly
def test_a_comparison_says_what_is_proven_and_has_what_was_at_work_and_the_next_prompt_of_both(
    served: Served,
) -> None:
    """The target shows all of it; a badge alone said that the beginning is proven (issue 12)."""
    page = served.tab.page
    served.open(f"diff?a={served.run}&b={served.run}&other={served.fork}", 1440)
    left, panel = page.get_by_label("Both in one diagram"), page.get_by_label("What differs", exact=True)
    expect(left).to_contain_text("above: the same in both, 11 events, proved by hash")
    expect(panel.locator(".prefix b")).to_have_text("Prefix proved")
    expect(panel).to_contain_text("11 events, as in A")
    assert left.locator(".work-bar").count() > 6
    assert left.locator(".wait-bar").count() == 2
    assert found_by_axe(page) == []

    panel.get_by_role("tab", name="Words").press("ArrowRight")
    expect(panel.get_by_role("tab", name="State")).to_be_focused()
    expect(panel.get_by_role("row").filter(has_text="turn 2 reply")).to_contain_text("Only up to 2.8 tonnes")
    panel.get_by_role("tab", name="State").press("ArrowRight")
    expect(panel).to_contain_text("main was given")
    expect(panel).to_contain_text("Up to 3.5 tonnes.")
    expect(panel).to_contain_text("Only up to 2.8 tonnes this week.")
    assert "tab=lens" in page.url
    served.tab.check()
