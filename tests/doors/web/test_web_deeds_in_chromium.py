"""What can be done from the pages, in a real browser: hold and release, note, reveal, what-if, many forks, delete. Each dialog for everybody."""

import json
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Locator, Page, expect

from intersession import SessionSystem
from intersession_actors.outside.agents.turn import Turn
from intersession_events.facts import AccessRecorded, ExchangeReleased, NotePinned
from intersession_events.log.recorded import parts_in
from support.doors.chromium import WAIT_MS, Tab, chromium, found_by_axe
from support.doors.command_line import ran
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.doors.web_log import HOSTILE, seen
from support.running import closed_exchange, merged

expect.set_options(timeout=WAIT_MS)
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(400)]
MAIN, RESEARCH = "agent:main:main", "agent:research:main"
SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
CONFIG: dict[str, Any] = {
    "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
    "session": {"agentToAgent": {"maxPingPongTurns": 1}},
    "agents": {"list": [{"id": "main", "default": True}, {"id": "research"}]},
    "cron": {
        "jobs": {
            "news": {
                "name": "The news of the day",
                "schedule": {"kind": "cron", "expr": "0 9 1 1 *", "tz": "Europe/Berlin"},
                "payload": {"message": "what is new?"},
            }
        }
    },
}


class Deeds(NamedTuple):
    """A browser that is in, and the system behind the page; research answers only while `open_door` is set."""

    system: SessionSystem
    gateway: LiveGateway
    tab: Tab
    open_door: threading.Event

    @property
    def page(self) -> Page:
        return self.tab.page

    def sent(self, text: str) -> str:
        """Have main ask research; return the exchange. In a thread of its own: Playwright has a loop in this one."""
        given = {"sessionKey": RESEARCH, "message": text, "timeoutSeconds": 0}
        with ThreadPoolExecutor(1) as thread:
            thread.submit(self.system.tools(MAIN).call, "sessions_send", given).result()
        return str(self.asked("runs", kind="exchange")["runs"][0]["id"])

    def ended(self, text: str) -> str:
        """Have main ask research; return the exchange once it is over."""
        run = self.sent(text)
        (begun,) = [one for one in self.asked("runs", kind="exchange")["runs"] if one["id"] == run]
        closed_exchange(self.system, begun["runId"])
        return run

    def asked(self, question: str, **given: Any) -> Any:
        with self.gateway.http() as client:
            return client.get(f"/debug/api/{question}", params=given).raise_for_status().json()

    def do(self, method: str, **params: Any) -> Any:
        with self.gateway.http() as client:
            done = client.post("/debug/api/do", json={"method": method, "params": params})
            return done.raise_for_status().json()["result"]

    def open(self, path: str) -> None:
        self.page.goto(f"{self.gateway.address}/debug/{path}")

    def events(self, kind: type) -> list[Any]:
        return [one.event for one in parts_in(self.system.log.all()) if isinstance(one.event, kind)]

    def dialog(self, button: Locator, title: str) -> Locator:
        """Open a dialog, and find it without a fault for whoever can't see it, or sees it in the dark."""
        button.click()
        dialog = self.page.get_by_role("dialog", name=title)
        expect(dialog).to_be_visible()
        assert found_by_axe(self.page) == []
        return dialog


@pytest.fixture(scope="module")
def deeds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deeds]:
    open_door = threading.Event()
    open_door.set()

    def research(turn: Turn) -> str:
        assert open_door.wait(60)
        return f"research says {turn.message[:200]}"

    agents: dict[str, Callable[[Turn], str]] = {
        "main": lambda turn: f"main heard {turn.message}",
        "research": research,
    }
    store = tmp_path_factory.mktemp("deeds") / "deeds.db"
    with (
        SessionSystem(f"sqlite:///{store}", agents=agents, config=merged(CONFIG, GATEWAY)) as system,
        LiveGateway(system) as gateway,
        chromium() as browser,
    ):
        context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        tab = Tab(context, gateway.address)
        tab.come_in()
        yield Deeds(system, gateway, tab, open_door)
        open_door.set()


def test_an_exchange_is_held_and_released_with_other_words_left_out_or_ended(deeds: Deeds) -> None:
    page = deeds.page
    for button, title, text, by in (
        ("Edit", "Let another text go on", "Only up to 2.8 tonnes.", "Release with this text"),
        ("Leave out", "Leave this text out", None, "Leave it out"),
        ("End the exchange", "End the exchange", None, "End it"),
    ):
        deeds.open_door.clear()
        run = deeds.sent(f"{button}?")
        deeds.open(f"run/{run}")
        hold = deeds.dialog(page.get_by_role("button", name="Hold"), "Hold this exchange")
        hold.get_by_label("Before").select_option("reply")
        hold.get_by_role("button", name="Hold it").click()
        expect(page.get_by_text("It will be held")).to_be_attached()
        deeds.open_door.set()
        held = page.get_by_role("region", name="Held")
        expect(held).to_contain_text(f"research says {button}?")
        assert found_by_axe(page) == []
        dialog = deeds.dialog(held.get_by_role("button", name=button), title)
        if text is not None:
            dialog.get_by_role("textbox").fill(text)
        dialog.get_by_role("button", name=by).click()
        expect(held).to_have_count(0)

    released = deeds.events(ExchangeReleased)
    assert [(one.action, one.by) for one in released] == [
        ("edit", "operator"),
        ("drop", "operator"),
        ("end", "operator"),
    ]
    assert released[0].text == "Only up to 2.8 tonnes."
    deeds.tab.check()


@pytest.mark.clause("FORK-4")
def test_what_is_asked_at_the_head_is_done_there_though_the_log_goes_on_and_others_see_it(
    deeds: Deeds,
) -> None:
    page = deeds.page
    deeds.open_door.clear()
    run = deeds.sent("Where does it stand?")
    deeds.open(f"run/{run}")
    slider = page.get_by_role("slider", name="Place in the run")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("^after"))
    other = Tab(page.context, deeds.gateway.address)
    other.page.goto(f"{deeds.gateway.address}/debug/run/{run}?at=start")
    expect(other.page.get_by_role("slider")).to_be_visible()
    page.keyboard.press("N")
    dialog = page.get_by_role("dialog", name="Pin a note here")
    place = re.compile(r"after #(\d+)")
    asked_at = place.search(dialog.inner_text())
    dialog.get_by_role("textbox").fill("Before it was answered")
    known = slider.get_attribute("max")
    deeds.open_door.set()
    expect(slider).not_to_have_attribute("max", known or "")
    expect(page.locator(".now")).to_contain_text("nothing follows")
    expect(dialog.get_by_role("textbox")).to_have_value("Before it was answered")
    expect(dialog.get_by_role("textbox")).to_be_focused()
    dialog.get_by_role("button", name="Pin it").click()
    expect(page.get_by_text("Noted, after #")).to_be_visible()

    assert asked_at is not None
    (pinned,) = [
        one for one in deeds.asked("notes", run=run)["notes"] if one["text"] == "Before it was answered"
    ]
    assert pinned["place"]["position"] == int(asked_at[1])
    expect(other.page.locator(".notes")).to_contain_text("Before it was answered")
    expect(other.page.locator(".now")).to_contain_text("events follow")  # a place in the past stays
    other.check()
    other.page.close()
    deeds.tab.check()


def test_a_note_is_pinned_and_stands_beside_the_place_whatever_is_written_in_it(deeds: Deeds) -> None:
    page = deeds.page
    run = deeds.sent("Notes?")
    deeds.open(f"run/{run}?at=start")
    dialog = deeds.dialog(page.get_by_role("button", name="Note"), "Pin a note here")
    dialog.get_by_role("textbox").fill(HOSTILE[0])
    dialog.get_by_role("button", name="Pin it").click()
    notes = page.locator(".notes p")
    expect(notes).to_have_count(1)
    for text in HOSTILE[1:]:
        deeds.do("notes.pin", run=run, at=f"{run}@start", text=text)
    deeds.open(f"run/{run}?at=start")
    expect(notes).to_have_count(len(HOSTILE))

    shown = notes.evaluate_all("all => all.map(one => one.textContent)")
    assert [text for text in HOSTILE if not any(seen(text) in one for one in shown)] == []
    assert page.locator("#app script, #app img, #app iframe, #app [onerror]").count() == 0
    assert found_by_axe(page) == []
    assert len([one for one in deeds.events(NotePinned) if one.flow == run]) == len(HOSTILE)
    deeds.tab.check()


def test_a_secret_is_revealed_once_somebody_says_so_and_that_is_recorded(deeds: Deeds) -> None:
    page = deeds.page
    run = deeds.sent(f"The key is {SECRET}.")
    at = next(step["position"] for step in deeds.asked("steps", run=run)["steps"] if "messageId" in step)
    deeds.open(f"run/{run}?at={at}&tab=event")
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text("Secrets in it are hidden.")
    expect(panel).not_to_contain_text(SECRET)
    asking = deeds.dialog(panel.get_by_role("button", name="Reveal"), "Reveal the secrets of #")
    asking.get_by_role("button", name="Reveal them").click()

    expect(page.get_by_role("dialog")).to_contain_text(SECRET)
    assert found_by_axe(page) == []
    with ThreadPoolExecutor(1) as thread:
        thread.submit(deeds.system.checkpoint).result()
    assert "debug.reveal" in [one.tool for one in deeds.events(AccessRecorded)]
    deeds.tab.check()


@pytest.mark.clause("FORK-8")
def test_what_if_is_asked_many_times_each_is_compared_and_forks_are_deleted(deeds: Deeds) -> None:
    page = deeds.page
    hostile = next(text for text in HOSTILE if "<" in text)
    known = len(deeds.asked("forks")["forks"])  # other tests of this browser make forks, too
    run = deeds.sent(hostile)
    deeds.open(f"run/{run}?at=reply")
    expect(page.get_by_role("slider", name="Place in the run")).to_have_attribute(
        "aria-valuetext", re.compile("^after")
    )

    dialog = deeds.dialog(page.get_by_role("button", name="What if"), "What if")
    expect(dialog.get_by_label("What is said instead")).to_have_value(f"research says {hostile[:200]}")
    dialog.get_by_label("What is said instead").fill(f"What if {hostile}")
    dialog.get_by_label("Who answers from there").select_option("script")
    dialog.get_by_label("Replies, one a line").fill("So be it.\nANNOUNCE_SKIP")
    dialog.get_by_label("How often").fill("2")
    dialog.get_by_role("button", name="Make the fork").click()
    dialog = page.get_by_role("dialog", name="The same fork, 2 times")
    expect(dialog).to_contain_text("2 forks made.")
    row = dialog.get_by_role("row").nth(1)
    expect(row.get_by_role("cell").first).to_have_text("2")
    assert found_by_axe(page) == []
    row.get_by_role("link").click()

    expect(page.get_by_role("heading", name="and its fork")).to_be_visible()
    expect(page.get_by_label("What differs")).to_contain_text("What if")
    expect(page.locator(".proof")).to_contain_text("Verified, both")
    assert found_by_axe(page) == []

    # The same fork again, from its comparison: with its cut and what is otherwise in it.
    again = deeds.dialog(page.get_by_role("button", name="Run B again"), "Run B again")
    again.get_by_label("Who answers from there").select_option("script")
    again.get_by_label("Replies, one a line").fill("So be it.\nANNOUNCE_SKIP")
    again.get_by_label("How often").fill("1")
    again.get_by_role("button", name="Make the forks").click()
    expect(page.get_by_role("dialog", name="The same fork, once more")).to_contain_text("1 fork made.")
    page.get_by_role("dialog").get_by_role("link").click()
    expect(page.get_by_label("What differs")).to_contain_text("What if")
    deeds.open("forks")
    delete = page.get_by_role("button", name="Delete fork")
    expect(delete).to_have_count(known + 3)
    asking = deeds.dialog(delete.first, "Delete this fork")
    asking.get_by_role("button", name="Delete it").click()
    expect(delete).to_have_count(known + 2)
    assert len(deeds.asked("forks")["forks"]) == known + 2
    deeds.tab.check()


def test_every_other_dialog_is_for_everybody(deeds: Deeds) -> None:
    page = deeds.page
    run = deeds.ended("Dialogs?")
    deeds.open(f"run/{run}")
    expect(page.get_by_role("slider", name="Place in the run")).to_be_visible()
    found: dict[str, list[str]] = {}
    for key in ("g", "b", "d", "s", "f", "F", "N", "?"):
        page.keyboard.press(key)
        expect(page.get_by_role("dialog")).to_be_visible()
        found[key] = found_by_axe(page)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    page.set_viewport_size({"width": 375, "height": 812})
    page.keyboard.press("f")
    expect(page.get_by_role("dialog")).to_be_visible()
    found["f, narrow"] = found_by_axe(page)
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1280, "height": 900})
    assert {key: wrong for key, wrong in found.items() if wrong} == {}
    deeds.tab.check()


def test_a_place_is_marked_and_what_changed_since_is_said(deeds: Deeds) -> None:
    page = deeds.page
    run = deeds.sent("Marks?")
    deeds.open(f"run/{run}?at=start")
    expect(page.get_by_role("slider", name="Place in the run")).to_be_visible()
    page.get_by_role("button", name="Mark", exact=True).click()
    page.keyboard.press("End")
    page.get_by_role("tab", name="Since mark").click()

    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text("What changed between the two places")
    expect(panel.get_by_role("row").filter(has_text="exchange · loop end")).to_be_visible()
    expect(page.locator("svg.dg .marked")).to_have_count(1)
    assert "mark=" in page.url
    assert found_by_axe(page) == []
    page.get_by_role("button", name="marked").click()
    expect(page.get_by_role("tab", name="Since mark")).to_have_count(0)
    deeds.tab.check()


def test_what_the_policy_forbids_is_taken_down_and_fails_a_test(deeds: Deeds) -> None:
    tab = Tab(deeds.page.context, deeds.gateway.address)
    tab.page.goto(f"{deeds.gateway.address}/debug/runs")
    expect(tab.page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    for forbidden in (
        "try { document.body.setAttribute('onclick', 'alert(1)') } catch {}",
        "document.body.append(Object.assign(new Image(), {src: 'https://elsewhere.example/x.png'}))",
        "fetch('https://elsewhere.example/').catch(() => {})",
        "try { document.body.innerHTML = '<b>x</b>' } catch {}",
    ):
        tab.wrong.clear()
        # Nobody says when the browser has told: what it has to tell is awaited.
        with tab.page.expect_event("console", predicate=lambda said: said.type == "error"):
            tab.page.evaluate(f"() => {{ {forbidden} }}")
        assert tab.wrong, forbidden
        with pytest.raises(AssertionError):
            tab.check()
    tab.page.close()
    assert json.dumps(deeds.tab.wrong) == "[]"


@pytest.mark.clause("FORK-8")
@pytest.mark.timeout(400)
def test_whatever_is_written_into_a_fork_is_text_in_its_dialog_in_the_list_and_in_the_comparison(
    deeds: Deeds,
) -> None:
    """Each row of the hostile inputs, as what is said instead, and as a further message."""
    page = deeds.page
    run = deeds.ended("What may be said?")
    made: dict[str, str] = {}
    for number, text in enumerate(HOSTILE):
        kind = {"kind": "inject", "key": "agent:main:main"} if number % 2 else {"kind": "reply"}
        at = f"{run}@reply"
        answer = deeds.do("forks.make", run=run, at=at, edits=[{**kind, "value": text}], carryOn=False)
        made[answer["fork"]] = text
    deeds.open("forks")
    for fork in made:
        expect(page.get_by_role("row").filter(has_text=fork[:8])).to_be_visible()
    shown = page.get_by_role("main").evaluate("one => one.textContent")
    assert [text for text in HOSTILE if seen(text) not in shown] == []
    for fork, text in made.items():
        deeds.open(f"diff?a={run}&b={run}&other={fork}")
        expect(page.locator(".head .sum")).to_contain_text("B is a fork")
        assert seen(text) in page.locator(".head .sum").evaluate("one => one.textContent")
        assert page.locator("#app script, #app img, #app iframe, #app [onerror]").count() == 0

    # What is prefilled is what was said, letter by letter: whoever makes the fork forks that.
    for text in HOSTILE:
        said = deeds.sent(text)
        deeds.open(f"run/{said}?at=reply")
        expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("^after"))
        dialog = deeds.dialog(page.get_by_role("button", name="Fork here"), "Fork here")
        dialog.get_by_label("What is otherwise").select_option("message")
        dialog.get_by_label("What is otherwise").select_option("reply")
        expect(dialog.get_by_label("What is said instead")).to_have_value(re.compile("^research says"))
        assert text[:200] in dialog.get_by_label("What is said instead").input_value()
        dialog.get_by_role("button", name="Cancel").click()
    deeds.tab.check()


@pytest.mark.timeout(240)
def test_what_is_copied_as_a_command_and_as_python_runs_as_it_stands(deeds: Deeds) -> None:
    """In a fork, too: there nothing is offered that would be done to the log that it was made of."""
    page = deeds.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=deeds.gateway.address)
    run = deeds.sent("Copied?")
    fork = deeds.do("forks.make", run=run, at=f"{run}@reply", edits=[], carryOn=False)["fork"]
    for path, named in ((f"run/{run}?at=reply", run), (f"run/{run}?fork={fork}", fork)):
        deeds.open(path)
        expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("^after"))
        copied = {}
        for name in ("CLI", "Python"):
            page.get_by_role("button", name=name, exact=True).click()
            page.wait_for_function(
                "async name => (await navigator.clipboard.readText()).includes(name)", arg=named
            )
            copied[name] = page.evaluate("() => navigator.clipboard.readText()")
        words = shlex.split(copied["CLI"])
        assert words[0] == "intersession"
        shown = ran(*words[1:])
        assert shown.exit_code == 0, shown.err
        said = subprocess.run(
            [sys.executable, "-c", copied["Python"]], capture_output=True, text=True, check=False, timeout=60
        )
        assert said.returncode == 0, said.stderr
        assert "'exchanges'" in said.stdout
    for name in ("Fork here", "What if", "Note", "Hold"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.get_by_role("button", name="File")).to_be_visible()
    page.keyboard.press("N")
    page.keyboard.press("f")
    expect(page.get_by_role("dialog")).to_have_count(0)
    deeds.tab.check()


@pytest.mark.clause("FORK-7")
def test_a_fork_that_left_its_recording_goes_on_loosely_and_what_differs_is_shown(deeds: Deeds) -> None:
    page = deeds.page
    run = deeds.ended("Does it hold?")
    deeds.open(f"run/{run}?at=reply")
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("^after"))
    dialog = deeds.dialog(page.get_by_role("button", name="What if"), "What if")
    expect(dialog.get_by_label("Who answers from there").locator("option[value=loose]")).to_have_count(1)
    dialog.get_by_label("What is said instead").fill("Something else altogether.")
    dialog.get_by_role("button", name="Make the fork").click()
    left = page.get_by_role("dialog", name="It left the recording")
    expect(left).to_contain_text("nothing recorded that fits")
    assert found_by_axe(page) == []
    known = {fork["id"] for fork in deeds.asked("forks")["forks"]}

    left.get_by_role("button", name="Go on loosely").click()
    expect(left).to_have_count(0)

    expect(page.get_by_role("heading", name="and its fork")).to_be_visible()
    expect(page.get_by_label("What differs")).to_contain_text("Something else altogether.")
    (loose,) = [fork for fork in deeds.asked("forks")["forks"] if fork["id"] not in known]
    assert loose["outcome"]["turns"] == 1
    deeds.tab.check()


@pytest.mark.clause("CRON-5")
def test_a_scheduled_job_is_seen_run_and_paused(deeds: Deeds) -> None:
    page = deeds.page
    deeds.open("schedules")
    row = page.get_by_role("row").filter(has_text="The news of the day")
    expect(row).to_contain_text("0 9 1 1 * Europe/Berlin")
    row.get_by_role("button", name="Run now").click()
    expect(row.get_by_role("link", name="Ok")).to_be_visible()
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("paused")
    row.get_by_role("button", name="Resume").click()
    expect(row).not_to_contain_text("paused")
    assert found_by_axe(page) == []
