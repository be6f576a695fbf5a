"""Five tasks in a real browser, with the mouse alone, with the keyboard alone, and on a narrow screen: none takes more than ten steps."""

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from intersession.cli.host.hosting import forking_beside
from intersession.cli.host.reading import reader_of
from intersession.cli.shell.answer import Reading
from intersession.web.alone import Deed
from intersession_actors.calls.service.reader import Reader
from support.doors.chromium import WAIT_MS, Tab, chromium, come_in
from support.doors.debugging import debugging
from support.doors.imported_store import imported_store
from support.doors.web_log import played
from support.openclaw.samples import HOUSEHOLD

expect.set_options(timeout=WAIT_MS)
MOST = 10
By = Literal["mouse", "keys", "narrow"]
SIZES = {"mouse": (1280, 800), "keys": (1280, 800), "narrow": (375, 812)}


class Steps:
    """What a person does, counted: a click, a key, a text that is typed, a choice."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.counted = 0

    def click(self, where: Locator) -> None:
        self.counted += 1
        where.click()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.counted += 1
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.counted += 1
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)


class Story(NamedTuple):
    """What the tasks are about in a log: who is asked, and the words that are looked for."""

    asked: str
    known_at_3: str
    unknown_at_3: str
    named: str
    answer: str
    is_imported: bool = False


DEMO = Story(
    asked="research",
    known_at_3="Up to 3.5 tonnes.",
    unknown_at_3="Then it closes at 17 m/s",
    named="3.5 tonnes",
    answer="Up to 3.5 tonnes. Above that it is the northern road.",
)
HOUSE = Story(
    asked="desk",
    known_at_3="It is shorter.",
    unknown_at_3="A mile.",
    named="shorter",
    answer="It is shorter.",
    is_imported=True,
)


class Served(NamedTuple):
    browser: Browser
    address: str
    story: Story
    door: str = ""
    """The address that lets in once; where there is none, the token does."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    # A file: a log in memory can't be forked.
    with played(store=tmp_path_factory.mktemp("tasks") / "demo.db") as (_, gateway), chromium() as browser:
        yield Served(browser, gateway.address, DEMO)


@contextmanager
def imported(browser: Browser, folder: Path) -> Generator[Served]:
    """Serve an import of OpenClaw's state, as `intersession debug DIR` does."""
    reading = Reading(store=str(imported_store(HOUSEHOLD, folder / "household.db")))

    @contextmanager
    def opens(_: Callable[[int, int | None], None]) -> Generator[tuple[Reader, Deed | None]]:
        with reader_of(reading) as reader, forking_beside(reader, reading) as fork:
            yield reader, fork

    with debugging(opens) as door:
        yield Served(browser, door.partition("/debug")[0], HOUSE, door)


@pytest.mark.ci
def test_five_tasks_take_at_most_ten_steps_each_with_the_keyboard_alone(
    served: Served, tmp_path: Path
) -> None:
    done(served, "keys", tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("by", ["mouse", "narrow"])
def test_five_tasks_take_at_most_ten_steps_each_by_mouse_and_on_a_narrow_screen(
    served: Served, by: By, tmp_path: Path
) -> None:
    done(served, by, tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(400)
@pytest.mark.parametrize("by", ["mouse", "keys", "narrow"])
def test_five_tasks_take_at_most_ten_steps_each_on_an_import(served: Served, by: By, tmp_path: Path) -> None:
    with imported(served.browser, tmp_path) as log:
        done(log, by, tmp_path)


def done(served: Served, by: By, folder: Path) -> None:
    """Do the five tasks one after the other, each from where the one before ended."""
    width, height = SIZES[by]
    context = served.browser.new_context(
        viewport={"width": width, "height": height}, reduced_motion="reduce", accept_downloads=True
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served.address)
    tab = Tab(context, served.address)
    page = tab.page
    page.goto(served.door or served.address)
    if not served.door:
        come_in(page)
    expect(page.locator("tbody tr:not(.day)")).not_to_have_count(0)
    tab.wrong.clear()  # the browser says so itself where it is not let in yet
    keys, story = by == "keys", served.story

    limited = Steps(page)
    found_the_run_that_a_limit_cut(limited, keys=keys)
    seen = Steps(page)
    said_what_the_asked_had_seen_at_turn_3(seen, story, keys=keys)
    named = Steps(page)
    found_who_first_named_it(named, story, keys=keys)
    forked = Steps(page)
    forked_before_it(forked, story, keys=keys)
    sent = Steps(page)
    sent_the_link_and_the_file(sent, folder, keys=keys)

    # In the order of the tasks: 2, 3, 8, 3, 3 with the keyboard, 2, 1, 4, 4, 3 with the mouse; on a narrow screen 3, 2, 5, 4, 3.
    counted = [steps.counted for steps in (limited, seen, named, forked, sent)]
    assert max(counted) <= MOST, f"{by}: {counted}"
    tab.check()
    context.close()


def found_the_run_that_a_limit_cut(steps: Steps, *, keys: bool) -> None:
    page = steps.page
    rows = page.locator("tbody tr:not(.day)")
    if keys:
        steps.press("i")
        expect(rows).to_have_count(1)
        steps.press("Enter")
    else:
        if (unfold := page.get_by_role("button", name="Filter", exact=True)).is_visible():
            steps.click(unfold)
        steps.counted += 1
        page.get_by_label("How it ended").select_option("turn_limit")
        expect(rows).to_have_count(1)
        steps.click(rows.get_by_role("link"))
    expect(page.locator(".head .sum b")).to_contain_text("The limit of turns was reached")


def said_what_the_asked_had_seen_at_turn_3(steps: Steps, story: Story, *, keys: bool) -> None:
    page = steps.page
    if keys:
        steps.press("g")
        steps.type("turn:3")
        steps.press("Enter")
    else:
        steps.click(page.locator("svg.dg g.row").filter(has_text="turn 3"))
    expect(page.locator(".now b")).to_contain_text(
        re.compile("turn 3|has reached|is handed|message|is told|#55")
    )
    transcript = chosen(steps, story.asked)
    expect(transcript).to_contain_text(story.known_at_3)
    expect(transcript).not_to_contain_text(story.unknown_at_3)


def chosen(steps: Steps, name: str) -> Locator:
    """Return a session's transcript; where there is room for one only, and another one is shown, it is chosen."""
    page = steps.page
    expect(page.get_by_label(re.compile("^Transcript of ")).first).to_be_visible()
    transcript = page.get_by_label(f"Transcript of {name}")
    if not transcript.count():
        steps.click(page.get_by_label("Whose transcript").get_by_role("button", name=name))
    return transcript


def found_who_first_named_it(steps: Steps, story: Story, *, keys: bool) -> None:
    page = steps.page
    if keys:
        steps.press("/")
    else:
        steps.click(page.get_by_role("searchbox", name="Search messages and events"))
    steps.type(story.named)
    steps.press("Enter")
    first = page.locator(".note.first")
    expect(first).to_contain_text(re.compile(rf"First said\s*by\s*[A-Z]?\s*{story.asked}"))
    if keys:
        while not page.evaluate("() => document.activeElement.matches('.note.first a')"):
            steps.press("Tab")
            assert steps.counted <= MOST
        steps.press("Enter")
    else:
        steps.click(first.get_by_role("link"))
    expect(chosen(steps, story.asked)).to_contain_text(story.known_at_3)


def forked_before_it(steps: Steps, story: Story, *, keys: bool) -> None:
    page = steps.page
    dialog = page.get_by_role("dialog")
    if keys:
        steps.press("f")
    else:
        steps.click(page.get_by_role("button", name="Fork here"))
    text = dialog.get_by_label("What is said instead")
    expect(text).to_have_value(story.answer)
    if not keys:
        steps.click(text)
    expect(text).to_be_focused()
    steps.type("Only up to 2.8 tonnes this week.")
    if keys:
        steps.press("Control+Enter")
    else:
        steps.click(dialog.get_by_role("button", name="Make the fork"))
    expect(page.get_by_role("heading", name="and its fork")).to_be_visible()
    expect(page.locator("svg.dg")).to_contain_text("B was cut after")
    expect(page.get_by_label("What differs").locator("ins").filter(has_text="2.8")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("slider", name="Place in the run")).to_be_visible()


def sent_the_link_and_the_file(steps: Steps, folder: Path, *, keys: bool) -> None:
    page = steps.page
    if keys:
        steps.press("y")
    else:
        steps.click(page.get_by_role("button", name="Link"))
    expect(page.get_by_text("Link copied")).to_be_attached()
    assert page.evaluate("() => navigator.clipboard.readText()") == page.url
    if keys:
        steps.press("s")
    else:
        steps.click(page.get_by_role("button", name="File"))
    bundle = page.get_by_role("dialog").get_by_role("link", name="Bundle for an auditor")
    expect(bundle).to_be_visible()
    is_recorded = "is recorded" in page.get_by_role("dialog").inner_text()
    assert is_recorded == (page.get_by_text(", read only").count() == 0)
    with page.expect_download() as coming:
        if keys:
            page.wait_for_function("() => document.activeElement.textContent === 'Bundle for an auditor'")
            steps.press("Enter")
        else:
            steps.click(bundle)
    file = folder / coming.value.suggested_filename
    coming.value.save_as(file)
    assert file.read_bytes().startswith(b"PK")
    page.keyboard.press("Escape")
