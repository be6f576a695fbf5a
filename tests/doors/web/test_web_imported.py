"""The web debugger on an import of OpenClaw's state, as `intersession debug DIR` opens it: progress, and runs that others recorded."""

import shutil
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Page, expect

from intersession import SessionSystem, Turn
from intersession.cli.host.hosting import forking_beside
from intersession.cli.host.reading import reader_of
from intersession.cli.shell.answer import Reading
from intersession.cli.time_travel.stepper import Stepper
from intersession.web.alone import Deed
from intersession.web.questions.called import with_names
from intersession.web.questions.of_runs import RunsQuery, runs
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.opened import open_log
from intersession_events.facts import ExchangeClosed
from intersession_projections.basics.speakers import begins_as_openclaws
from support.doors.chromium import WAIT_MS, Tab, chromium
from support.doors.command_line import ran
from support.doors.debugging import debugging
from support.doors.imported_store import imported_store
from support.foreign.recording import recorded
from support.openclaw.samples import HOUSEHOLD
from support.running import SEES_ALL, merged, wait_for

expect.set_options(timeout=WAIT_MS)


def listed(store: Path) -> list[dict[str, Any]]:
    with open_log(store) as log:
        found: list[dict[str, Any]] = [*runs(log.debug.view, RunsQuery(limit=100))["runs"]]
    return found


@contextmanager
def browsing(store: Path) -> Generator[tuple[Page, str]]:
    """Yield the page of an import, with its runs on it, and the address before its paths."""

    @contextmanager
    def opens(_: Callable[[int, int | None], None]) -> Generator[tuple[Reader, Deed | None]]:
        with reader_of(Reading(store=str(store))) as reader:
            yield reader, None

    with debugging(opens, "household") as address, chromium() as browser:
        base = address.partition("/debug")[0]
        page = Tab(browser.new_context(reduced_motion="reduce"), base).page
        page.goto(address)
        expect(page.get_by_role("row").filter(has_text="What is the plan?")).to_be_visible()
        yield page, base


@pytest.fixture(scope="module")
def household(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported_store(HOUSEHOLD, tmp_path_factory.mktemp("imported") / "household.db")


def test_runs_of_an_import_are_called_by_their_words_and_who_asked(household: Path) -> None:
    found = {run["title"]: run for run in listed(household)}

    plan, count = found["What is the plan?"], found["Count the files"]
    assert [letter for letter, *_ in plan["outline"] if letter != "/"] == [*"udududuee"]
    assert [lane["kind"] for lane in count["lanes"]] == ["session", "sub"]


def test_a_run_of_an_import_takes_as_long_as_from_its_start_to_its_end(household: Path) -> None:
    """Its head said how long it was from the first row that is drawn, and the place how long from the start."""
    found = [run for run in listed(household) if run["kind"] != "run" and "closedAt" in run]

    assert found
    assert all(run["tookMs"] >= run["closedAt"] - run["began"] for run in found)


@pytest.mark.clause("LENS-3")
def test_stepping_through_an_import_leads_to_what_each_agent_had_been_told(household: Path) -> None:
    with open_log(household) as log:
        stepper = Stepper(
            log.debug, next(run["id"] for run in listed(household) if run["title"] == "What is the plan?")
        )
        assert stepper.go("@turn:2")
        here, behind = stepper.run_here, stepper.run_next
        assert here is not None
        assert behind is not None
        given, next_ = log.debug.lens(here), log.debug.lens(behind)

    assert (given["sessionKey"], next_["sessionKey"]) == ("agent:desk:main", "agent:home:main")
    assert "Why A?" in str(given["message"])
    assert "It is shorter." in str(next_["message"])


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_the_page_shows_what_an_imported_agent_had_been_told(household: Path) -> None:
    run = next(one["id"] for one in listed(household) if one["title"] == "What is the plan?")

    with browsing(household) as (page, base):
        page.goto(f"{base}/debug/run/{run}?at=turn:2&tab=lens")
        panel = page.get_by_role("main")
        expect(panel).to_contain_text("What desk was given")
        expect(panel).to_contain_text("not byte for byte what the model was given")
        page.get_by_text("What home is given next").click()
        expect(panel).to_contain_text("What home is about to be given")


def test_words_of_openclaws_own_are_told_as_its_own(household: Path) -> None:
    """A page called whoever had said them `user`, or the session that had asked."""
    with open_log(household) as log:
        state = with_names(log.debug.view, log.debug.state())

    told: Any = msgspec.to_builtins(state)
    transcripts = chain(*(one["transcript"] for one in told["sessions"]))
    said = {one["id"]: one["content"] for one in transcripts if one["role"] == "user"}
    begun = {one: text if isinstance(text, str) else text[0].get("text", "") for one, text in said.items()}
    assert told["openClaws"]
    assert {*told["openClaws"]} == {one for one, text in begun.items() if begins_as_openclaws(text)}


@pytest.fixture
def silent_import(tmp_path: Path) -> Path:
    """Return the store of an import of one transcript without a message."""
    state = tmp_path / "state" / "agents" / "main" / "sessions"
    state.mkdir(parents=True)
    (state / "sessions.json").write_text("{}", "utf-8")
    header = '{"type":"session","version":3,"id":"s1","timestamp":"2026-11-21T04:05:03.000Z","cwd":"/x"}\n'
    (state / "s1.jsonl").write_text(header, "utf-8")
    return imported_store(tmp_path / "state", tmp_path / "imported.db")


def test_an_import_in_which_nobody_asked_is_known_for_one(silent_import: Path) -> None:
    """A session of which it is not known when it was written to last was updated in 1970, the list said."""
    with open_log(silent_import) as log:
        assert runs(log.debug.view, RunsQuery()) == {
            "count": 0,
            "runs": [],
            "cursor": None,
            "imported": True,
        }
    assert "not recorded" in ran("sessions", "--store", str(silent_import)).out


@pytest.mark.nightly
def test_the_page_of_an_import_in_which_nobody_asked_names_no_command_that_can_not_help(
    silent_import: Path,
) -> None:
    """It named `intersession send` as the next step."""

    @contextmanager
    def opens(_: Callable[[int, int | None], None]) -> Generator[tuple[Reader, Deed | None]]:
        with reader_of(Reading(store=str(silent_import))) as reader:
            yield reader, None

    with debugging(opens, "silent") as address, chromium() as browser:
        tab = Tab(browser.new_context(reduced_motion="reduce"), address.partition("/debug")[0])
        tab.page.goto(address)
        expect(tab.page.get_by_role("main")).to_contain_text("Nobody asked anybody else in what was imported")
        expect(tab.page.get_by_role("main")).not_to_contain_text("intersession send")


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_beside_a_run_of_today_an_imported_one_is_not_said_to_have_asked_nobody(tmp_path: Path) -> None:
    store = imported_store(HOUSEHOLD, tmp_path / "household.db")

    def main(turn: Turn) -> str:
        if turn.step == "message" and turn.message == "Ask the desk":
            turn.tools.call("sessions_send", {"agentId": "desk", "message": "Is it open?"})
        return f"{turn.agent_id} at {turn.step}"

    two = merged(SEES_ALL, {"agents": {"list": [{"id": "main", "default": True}, {"id": "desk"}]}})
    with SessionSystem(store, agents={"main": main, "desk": main}, config=two) as system:
        system.inbound(channel="x", chat_id="1", sender="1", text="Ask the desk", wait=20)
        wait_for(system, ExchangeClosed, lambda closed: closed.reason != "inferred")
    runs_of = {run["title"]: run["id"] for run in listed(store)}

    with browsing(store) as (page, base):
        a, b = runs_of["What is the plan?"], runs_of["Is it open?"]
        page.goto(f"{base}/debug/diff?a={a}&b={b}&tab=lens")

        panel = page.get_by_label("What differs")
        expect(panel).to_contain_text("home was given")
        expect(panel).not_to_contain_text("nobody was asked any more")


def test_who_is_called_by_no_key_in_an_import_does_not_hide_its_runs(tmp_path: Path) -> None:
    state = tmp_path / "state"
    shutil.copytree(HOUSEHOLD, state)
    for file in state.rglob("*.jsonl"):
        said = file.read_text("utf-8")
        file.write_text(
            said.replace('"sourceSessionKey":"agent:home:main"', '"sourceSessionKey":"main"'), "utf-8"
        )

    found = listed(imported_store(state, tmp_path / "imported.db"))

    assert any(lane["id"] == "main" for run in found for lane in run["lanes"])


@pytest.fixture
def held_import(household: Path) -> Iterator[tuple[str, threading.Event]]:
    """Yield the address of a debugger whose import waits in the middle, and what lets it go on."""
    go_on = threading.Event()

    @contextmanager
    def opens(progress: Callable[[int, int | None], None]) -> Generator[tuple[Reader, Deed | None]]:
        progress(20, 400)
        assert go_on.wait(WAIT_MS / 1000)
        reading = Reading(store=str(household))
        with reader_of(reading) as reader, forking_beside(reader, reading) as fork:
            yield reader, fork

    with debugging(opens, "state-of-last-night") as address:
        yield address, go_on
    go_on.set()


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_the_page_shows_how_far_an_import_is_and_then_its_runs(
    held_import: tuple[str, threading.Event],
) -> None:
    address, go_on = held_import
    with chromium() as browser:
        tab = Tab(browser.new_context(reduced_motion="reduce"), address.partition("/debug")[0])
        page = tab.page
        page.goto(address)
        expect(page.get_by_role("heading", name="Importing")).to_be_visible()
        expect(page.get_by_role("main")).to_contain_text("state-of-last-night")
        expect(page.get_by_role("status")).to_contain_text("20 of 400 events")
        expect(page.get_by_role("progressbar")).to_have_attribute("value", "20")

        go_on.set()
        expect(page.get_by_role("row").filter(has_text="What is the plan?")).to_be_visible()

        # Each message of a transcript says which turn it is, though the record does not.
        page.get_by_role("row").filter(has_text="What is the plan?").get_by_role("link").click()
        desk = page.get_by_label("Transcript of desk").locator(".by")
        expect(desk.filter(has_text="turn 1")).not_to_have_count(0)


@pytest.mark.ci
@pytest.mark.clause("LENS-3", "ANS-3")
def test_the_page_of_an_imported_session_shows_what_each_answer_was_given(tmp_path: Path) -> None:
    """Nobody asked anybody there: no run's page leads to it."""
    store = tmp_path / "agents.db"
    ran("import", "--from", "openai-agents", str(recorded("agents-plain", tmp_path)), "--store", str(store))

    @contextmanager
    def opens(_: Callable[[int, int | None], None]) -> Generator[tuple[Reader, Deed | None]]:
        with reader_of(Reading(store=str(store))) as reader:
            yield reader, None

    with debugging(opens, "agents") as address, chromium() as browser:
        base = address.partition("/debug")[0]
        tab = Tab(browser.new_context(reduced_motion="reduce"), base)
        page = tab.page
        page.goto(address)
        page.get_by_role("link", name="Sessions", exact=True).click()
        page.locator("tbody a").first.click()
        page.get_by_role("button", name="prompt").last.click()
        panel = page.get_by_label("About the session")
        expect(panel).to_contain_text("not byte for byte what the model was given")
        expect(panel).to_contain_text("rain in Rome")
        panel.get_by_role("tab", name="Session").click()
        expect(panel).to_contain_text("Runs it took part in")

        page.goto(f"{base}/debug/search?words=rain+in+Rome")
        page.get_by_role("button", name="Who saw it?").click()
        expect(page.get_by_role("heading", name="Given to 1 imported answer")).to_be_visible()
        page.get_by_role("link", name="in what it had done since, from weather").click()
        expect(panel).to_contain_text("Done since")
        assert tab.wrong == []
