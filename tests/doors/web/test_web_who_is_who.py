"""Who is who on the pages: colours, names, marked words, how long a run took, and what is held. One browser, one log."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect

from intersession import SessionSystem, Turn
from intersession_actors.outside.channels.channels import MemoryChannel
from support.doors.chromium import WAIT_MS, Tab, chromium
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.running import SEES_ALL, merged

expect.set_options(timeout=WAIT_MS)
AGENTS = [f"agent{number:02d}" for number in range(15)]
HELD = {"session": {"agentToAgent": {"maxPingPongTurns": 1, "hold": "reply"}}}
COLOURS = """rows => rows.map(row => [...row.querySelectorAll('.parts .badge')]
  .map(badge => [badge.textContent.trim(), badge.getAttribute('class'), getComputedStyle(badge).getPropertyValue('--c')]))"""


class Pages(NamedTuple):
    """A browser that is in, beside a log in which fifteen agents asked each other, and one exchange is held."""

    tab: Tab
    address: str

    @property
    def page(self) -> Page:
        return self.tab.page

    def open(self, path: str) -> None:
        self.page.goto(f"{self.address}/debug/{path}")


def agent(turn: Turn) -> str:
    if turn.step == "message" and turn.message.startswith("ask "):
        asked = {
            "agentId": turn.message[4:],
            "message": "is the running shed open? run!",
            "timeoutSeconds": 0,
        }
        return str(turn.tools.call("sessions_send", asked)["status"])
    return f"{turn.session_key} heard it"


@pytest.fixture(scope="module")
def pages() -> Iterator[Pages]:
    config = merged(SEES_ALL, GATEWAY, HELD, {"agents": {"list": [{"id": name} for name in AGENTS]}})
    with (
        SessionSystem(
            ":memory:",
            agents=dict.fromkeys(AGENTS, agent),
            channels={"telegram": MemoryChannel()},
            config=config,
        ) as system,
        LiveGateway(system) as gateway,
    ):
        for asker, asked in zip(AGENTS, (*AGENTS[1:], AGENTS[0]), strict=True):
            text = f"ask {asked}"
            system.inbound(
                channel="telegram", chat_id="ada", text=text, sender="ada", agent_id=asker, wait=20
            )
        system.tools().call(
            "sessions_send",
            {"sessionKey": "agent:agent03:main", "message": "The operator asks.", "timeoutSeconds": 20},
        )
        with chromium() as browser:
            context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
            tab = Tab(context, gateway.address)
            tab.come_in()
            yield Pages(tab, gateway.address)


@pytest.mark.ci
@pytest.mark.timeout(240)
def test_two_sessions_of_a_run_never_share_a_colour_however_many_the_log_has(pages: Pages) -> None:
    pages.open("runs?kind=exchange")
    rows = pages.page.locator("tbody tr:not(.day)")
    expect(rows).to_have_count(16)

    colours = rows.evaluate_all(COLOURS)

    sessions = [[colour for _, look, colour in row if re.search(r"c-h\d+", look)] for row in colours]
    assert [len(set(row)) for row in sessions] == [len(row) for row in sessions]
    assert sum(len(row) == 2 for row in sessions) == 15  # none of fifteen is grey
    # A row names all who took part.
    assert "agent14" in rows.nth(1).inner_text()
    assert "agent00" in rows.nth(1).inner_text()

    # The same colour on all of a page: in its head, its diagram and its transcripts.
    rows.nth(1).get_by_role("link").click()
    expect(pages.page.locator(".lanes .badge")).to_have_count(3)
    looks = pages.page.locator(".lanes .badge").evaluate_all(
        "all => all.map(one => one.getAttribute('class'))"
    )
    assert len({look for look in looks if "c-h" in look}) == 2
    head = pages.page.locator(".head .badge").evaluate_all("all => all.map(one => one.getAttribute('class'))")
    assert {re.findall(r"c-h\d+", look)[0] for look in head} == {
        found[0] for look in looks if (found := re.findall(r"c-h\d+", look))
    }
    pages.tab.check()


@pytest.mark.ci
@pytest.mark.clause("FIND-1")
def test_whole_words_are_marked_in_what_a_search_finds_as_it_matches_them(pages: Pages) -> None:
    marks = pages.page.locator("tbody mark")
    for words, marked in (("run", {"run"}), ("runn*", {"running"}), ("SHED open", {"shed", "open"})):
        pages.open(f"search?words={words}")
        expect(marks.first).to_be_visible()
        assert set(marks.all_inner_texts()) == marked
    pages.tab.check()


@pytest.mark.ci
@pytest.mark.clause("LIVE-1")
@pytest.mark.timeout(240)
def test_a_held_run_says_since_when_has_keys_and_keeps_the_focus_near(pages: Pages) -> None:
    page = pages.page
    pages.open("runs?kind=exchange")
    page.locator("tbody tr:not(.day)").nth(2).get_by_role("link").click()
    expect(page.locator(".head .sum")).to_contain_text("held since")
    held = page.get_by_role("region", name="Held")
    expect(held).to_be_visible()

    page.keyboard.press("U")
    dialog = page.get_by_role("dialog", name="Let another text go on")
    expect(dialog.get_by_role("textbox")).to_have_value(re.compile("heard it$"))
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    dialog = page.get_by_role("dialog", name="Let this text go on")
    expect(dialog).to_contain_text("heard it")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    for key, title in (("o", "Leave this text out"), ("O", "End the exchange")):
        page.keyboard.press(key)
        expect(page.get_by_role("dialog", name=title)).to_be_visible()
        page.keyboard.press("Escape")
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text(
        "of what is held: let it go on, with another text, leave it out, end the exchange"
    )
    page.keyboard.press("Escape")

    # What was done takes its button away: the focus stays beside it.
    held.get_by_role("button", name="Release", exact=True).press("Enter")
    expect(held).to_have_count(0)
    page.wait_for_function("() => document.activeElement !== document.body")
    assert page.evaluate("() => document.querySelector('#app').contains(document.activeElement)")
    expect(page.locator(".head .sum")).to_contain_text(re.compile(r"\d+ m?s(, held \d+)?"))
    pages.tab.check()


@pytest.mark.ci
@pytest.mark.clause("PROV-2")
def test_the_operator_is_called_so_and_not_the_system(pages: Pages) -> None:
    pages.open("runs?kind=exchange")
    pages.page.locator("tbody tr:not(.day)").first.get_by_role("link").click()
    asked = (
        pages.page.get_by_label("Transcript of agent03").locator(".msg").filter(has_text="The operator asks.")
    )
    expect(asked.locator(".by b")).to_have_text("the operator")
    pages.tab.check()
