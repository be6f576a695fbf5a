"""Open pages follow what somebody else does: words that are erased leave every page, forks come to the list, cuts are marked."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from intersession import SessionSystem, Turn
from intersession.cli.commands.demo_agents import AGENTS, CONFIG
from intersession_events.facts import ForkEdit
from support.doors.chromium import WAIT_MS, Tab, chromium, come_in, found_by_axe
from support.doors.command_line import ran
from support.doors.gateway_live import GATEWAY, LiveGateway, newest
from support.doors.web_log import played
from support.running import Gate, merged

expect.set_options(timeout=WAIT_MS)
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(400)]
MAIN, RESEARCH = "agent:main:main", "agent:research:main"
SAID = "3.5 tonnes"
SEEN = 3
"""So many tabs are seen at a time; the others lie behind them."""


def elsewhere(do: Any, *given: Any, **named: Any) -> Any:
    """Do something in a thread of its own: Playwright has a loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(do, *given, **named).result()


def runs_of(page: Page, address: str) -> None:
    come_in(page, address)
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()


def left(page: Page) -> None:
    """Have another tab before this one, as far as its page can tell: a browser without windows shows all of them."""
    page.evaluate("""() => {
      Object.defineProperty(document, 'hidden', {configurable: true, get: () => true});
      document.dispatchEvent(new Event('visibilitychange'));
    }""")


def come_back(page: Page) -> None:
    page.evaluate("""() => {
      delete document.hidden;
      document.dispatchEvent(new Event('visibilitychange'));
    }""")


def test_words_that_are_erased_leave_every_page_that_shows_them(tmp_path: Path) -> None:
    with played(store=tmp_path / "played.db") as (system, gateway), chromium() as browser:
        run = newest(gateway)
        elsewhere(
            system.gateway.perform,
            "notes.pin",
            {"run": run, "at": f"{run}@turn:2", "text": f"Who said {SAID}?"},
        )
        context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        first = context.new_page()
        runs_of(first, gateway.address)
        left(first)
        at = f"run/{run}?at=turn:2"
        tabs: list[Tab] = []
        for path in (
            f"{at}",
            f"run/{run}?at=turn:4&tab=lens",
            f"{at}&tab=event",
            f"run/{run}?at=turn:4&tab=why",
            f"{at}&tab=raw&view=table",
            f"session/{RESEARCH}",
            "search?words=northern+road",
            "log?kind=turn_ended",
            f"diff?a={run}@turn:1&b={run}@turn:3",
        ):
            tab = Tab(context, gateway.address)
            tab.page.goto(f"{gateway.address}/debug/{path}")
            tabs.append(tab)
            expect(tab.page.locator("body")).to_contain_text(SAID)
            if len(tabs) > SEEN:
                left(tab.page)
        # A window that has begun with them.
        tabs[0].page.keyboard.press("f")
        expect(tabs[0].page.get_by_role("dialog")).to_be_visible()
        assert f"Who said {SAID}?" in tabs[0].page.content()

        for session in (RESEARCH, MAIN):
            elsewhere(system.erase, session, unsent="giveUp")

        for tab in tabs:
            tab.page.wait_for_function(
                "said => !document.querySelector('#main').outerHTML.includes(said)", arg=SAID
            )
            expect(tab.page.locator("#main")).not_to_contain_text("Reading the log")
            shown = tab.page.evaluate("() => document.title + document.documentElement.outerHTML")
            assert SAID not in shown, tab.page.url
            expect(tab.page.get_by_role("dialog")).to_have_count(0)
            tab.check()
        expect(tabs[0].page.get_by_label("Transcript of research")).to_contain_text("[erased]")
        expect(tabs[0].page.locator(".now")).to_contain_text("after turn 2")
        expect(tabs[6].page.locator("#main")).to_contain_text("matches")
        assert found_by_axe(tabs[0].page) == []


def test_forks_that_are_made_and_deleted_elsewhere_come_and_go_in_the_list(tmp_path: Path) -> None:
    store = tmp_path / "played.db"
    with played(store=store) as (system, gateway), chromium() as browser:
        run = newest(gateway)
        tab = Tab(browser.new_context(reduced_motion="reduce"), gateway.address)
        runs_of(tab.page, gateway.address)
        tab.wrong.clear()  # the browser says so itself where it is not let in yet
        tab.page.goto(f"{gateway.address}/debug/forks")
        expect(tab.page.get_by_role("heading", name="No forks of this log yet")).to_be_visible()

        made = ran("fork", run, "--at", "turn:2", "--skip", "--no-run", "--store", store)
        assert made.exit_code == 0, made.err
        rows = tab.page.locator("tbody tr")
        expect(rows).to_have_count(1)
        fork = elsewhere(
            system.fork, run, at="turn:3", edits=[ForkEdit(kind="drop")], agents={"*": "recorded"}
        )
        elsewhere(fork.close, 0)
        expect(rows).to_have_count(2)
        assert ran("forks", "rm", fork.log.log_id, "--store", store).exit_code == 0
        expect(rows).to_have_count(1)
        tab.check()


def test_what_is_open_of_a_fork_goes_on_with_it_and_loses_what_is_erased_in_it(tmp_path: Path) -> None:
    store = tmp_path / "played.db"
    with played(store=store) as (_, gateway), chromium() as browser:
        run = newest(gateway)
        made = ran("fork", run, "--at", "turn:2", "--skip", "--no-run", "--store", store, "--json")
        file = Path(json.loads(made.out)["store"])
        tab = Tab(browser.new_context(reduced_motion="reduce"), gateway.address)
        runs_of(tab.page, gateway.address)
        tab.wrong.clear()
        tab.page.goto(f"{gateway.address}/debug/run/{run}?fork={file.stem}")
        now, said = tab.page.locator(".now"), tab.page.get_by_label("Transcript of research")
        expect(now).to_contain_text("follows the log")
        expect(said).to_contain_text("Yes: the ferry runs from 07:00")

        def carry_on() -> None:
            with SessionSystem(file, agents=AGENTS, config=CONFIG) as system:
                system.carried_on(timeout=20)

        elsewhere(carry_on)
        expect(now).to_contain_text("nothing follows")
        gone = elsewhere(ran, "erase", RESEARCH, "--yes", "--give-up-unsent", "--store", file)
        assert gone.exit_code == 0, gone.err
        expect(said).to_contain_text("[erased]")
        expect(said).not_to_contain_text("Yes: the ferry runs from 07:00")
        tab.check()


def test_a_fork_of_a_fork_is_compared_with_both_cuts_marked(tmp_path: Path) -> None:
    store = tmp_path / "played.db"
    with played(store=store) as (system, gateway), chromium() as browser:
        run = newest(gateway)

        def twice() -> str:
            edits = [ForkEdit(kind="reply", value="Only up to 2.8 tonnes.")]
            first = system.fork(run, at="turn:2", edits=edits, agents={"*": "recorded"}, loose=True)
            first.carried_on(timeout=20)
            again = [ForkEdit(kind="reply", value="Then we stay at home.")]
            second = first.fork(run, at="turn:4", edits=again, agents={"*": "recorded"}, loose=True)
            second.carried_on(timeout=20)
            named: str = second.log.log_id
            second.close(grace=0)
            first.close(grace=0)
            return named

        fork = elsewhere(twice)
        tab = Tab(browser.new_context(reduced_motion="reduce"), gateway.address)
        runs_of(tab.page, gateway.address)
        tab.wrong.clear()  # the browser says so itself where it is not let in yet
        tab.page.goto(f"{gateway.address}/debug/diff?a={run}&b={run}&other={fork}")
        drawn = tab.page.locator("svg.dg.still")
        expect(drawn.locator(".placetx").filter(has_text="B was cut")).to_have_count(2)
        expect(drawn).to_contain_text("B was cut again after #")
        # What reached somebody and what would have is told apart by its sign, too.
        delivered, withheld = (drawn.locator(f"path.okc[d*='{way}']") for way in ("l3 3", "l11-11"))
        expect(delivered).to_have_count(1)
        expect(withheld).to_have_count(1)
        expect(tab.page.get_by_role("img", name="steps")).to_have_count(2)
        expect(tab.page.locator(".sum")).to_contain_text("B is a fork of a fork, cut after #")
        expect(tab.page.locator(".sum")).to_contain_text("2.8 tonnes")
        expect(tab.page.locator(".sum")).to_contain_text("stay at home")
        assert found_by_axe(tab.page) == []
        tab.check()


def test_ten_tabs_can_be_open_and_one_that_is_seen_again_has_what_came_meanwhile(tmp_path: Path) -> None:
    """Each held a connection, of which a browser has six for a server: the seventh was never read."""
    with played(store=tmp_path / "played.db") as (system, gateway), chromium() as browser:
        context = browser.new_context(reduced_motion="reduce")
        first = context.new_page()
        runs_of(first, gateway.address)
        left(first)
        for _ in range(9):
            page = context.new_page()
            page.goto(f"{gateway.address}/debug/runs")
            expect(
                page.get_by_role("link", name="Is the lake crossing open on Saturday?", exact=True)
            ).to_be_visible()
            left(page)
        told = {"channel": "telegram", "chat_id": "ada", "sender": "ada", "agent_id": "main"}
        elsewhere(system.inbound, text="And by train?", wait=20, **told)
        new = first.get_by_role("link", name="And by train?")
        expect(new).to_have_count(0)
        come_back(first)
        expect(new).to_be_visible()


def test_an_answer_grows_on_the_page_of_its_run(tmp_path: Path) -> None:
    gate = Gate()

    def talking(turn: Turn) -> Iterator[str]:
        yield "Good "
        gate.stop(turn)
        yield "morning, <b>Ada</b>."

    config = merged(CONFIG, GATEWAY)
    with (
        SessionSystem(tmp_path / "grows.db", agents={"main": talking}, config=config) as system,
        LiveGateway(system) as gateway,
        chromium() as browser,
    ):
        told = elsewhere(system.inbound, channel="chat", chat_id="1", text="Hello", sender="ada")
        gate.reached()
        tab = Tab(browser.new_context(), gateway.address)
        come_in(tab.page, gateway.address)
        tab.page.goto(f"{gateway.address}/debug/run/{told['runId']}")
        growing = tab.page.locator(".saying")
        expect(growing).to_contain_text("is saying: Good")
        gate.open()
        expect(tab.page.locator("body")).to_contain_text("Good morning, <b>Ada</b>.")
        expect(growing).to_have_count(0)
