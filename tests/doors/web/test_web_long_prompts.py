"""A long prompt in the web debugger begins at its end, and is read back page by page; two are held beside each other where they part."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Page, expect

from intersession import MemoryChannel, SessionSystem
from intersession_events.facts import AccessRecorded
from support.doors.chromium import WAIT_MS, Tab, chromium, found_by_axe
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.soaking import until

expect.set_options(timeout=WAIT_MS)
TURNS = 60
BEFORE = 2 * (TURNS - 1)
"""So many messages the transcript of the last run has."""


class Served(NamedTuple):
    system: SessionSystem
    page: Page
    tab: Tab
    gateway: LiveGateway
    runs: list[str]
    elsewhere: list[str]

    def asked(self, **given: Any) -> Any:
        with self.gateway.http() as client:
            return client.get("/debug/api/lens", params=given).json()

    def receipts(self, run: str) -> int:
        """Return how many receipts of looks at what a run was given there are."""
        seen = (one.event for one in self.system.log.all())
        return sum(isinstance(one, AccessRecorded) and run in one.filters for one in seen)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    agents = {"main": lambda turn: f"to {turn.message}", "ops": lambda turn: f"of {turn.message}"}
    config: Any = {"agents": {"list": [{"id": "main", "default": True}, {"id": "ops"}]}, **GATEWAY}
    with (
        SessionSystem(":memory:", agents=agents, channels={"x": MemoryChannel()}, config=config) as system,
        LiveGateway(system) as gateway,
    ):
        runs: dict[str, list[str]] = {
            agent: [
                system.inbound(
                    channel="x", chat_id="1", text=f"question {number}", sender="ann", agent_id=agent, wait=20
                )["runId"]
                for number in range(TURNS)
            ]
            for agent in agents
        }
        with chromium() as browser:
            context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
            tab = Tab(context, gateway.address)
            tab.come_in()
            yield Served(system, tab.page, tab, gateway, runs["main"], runs["ops"])


@pytest.mark.ci
@pytest.mark.clause("LENS-2")
def test_a_prompt_is_shown_from_its_end_and_read_back(served: Served) -> None:
    page, run = served.page, served.runs[-1]
    whole = served.asked(run=run, all="true")["messages"]
    assert len(whole) == BEFORE

    page.goto(f"{served.gateway.address}/debug/run/{run}?tab=lens")

    panel = page.get_by_role("tabpanel")
    transcript = panel.locator(".sec").filter(has=page.get_by_role("heading", name="Transcript"))
    expect(transcript.get_by_role("heading")).to_have_text(f"Transcript, {BEFORE} messages")
    expect(transcript.locator(".msg")).to_have_count(50)
    assert found_by_axe(page) == []
    for left, shown in ((BEFORE - 50, 100), (BEFORE - 100, BEFORE)):
        transcript.get_by_role("button", name=f"{left} earlier messages").click()
        expect(transcript.locator(".msg")).to_have_count(shown)
    expect(transcript.get_by_role("button", name="earlier message")).to_have_count(0)
    for number in (0, 1, 40, BEFORE - 1):
        said = whole[number]["content"]
        words = said if isinstance(said, str) else said[0]["text"]
        expect(transcript.locator(".msg").nth(number)).to_contain_text(words)
    served.tab.check()


@pytest.mark.ci
@pytest.mark.clause("LENS-2", "DIFF-1")
def test_two_prompts_are_held_beside_each_other_where_they_part(served: Served) -> None:
    """Of one session their ends show that; of two, all of both is looked at."""
    page, asked = served.page, list[str]()
    page.on("request", lambda one: asked.append(one.url) if "/debug/api/lens" in one.url else None)
    for a, b, same, rest, questions in (
        (served.runs[-3], served.runs[-1], BEFORE - 3, (0, 4), 2),
        (served.runs[-1], served.elsewhere[-1], 1, (BEFORE, BEFORE), 4),
    ):
        asked.clear()
        page.goto(f"{served.gateway.address}/debug/diff?a={a}&b={b}&tab=lens")

        panel = page.get_by_label("What differs")
        of_each = panel.locator(".sec")
        expect(panel).to_contain_text(f"{same} message{'' if same == 1 else 's'} the same in both")
        for number, count in enumerate(rest):
            expect(of_each.nth(number).locator(".msg")).to_have_count(count)
        assert len(asked) == questions
        assert sum("all=true" in one for one in asked) == questions - 2
    served.tab.check()


@pytest.mark.ci
@pytest.mark.clause("LENS-2", "VIS-4")
def test_a_page_before_is_asked_for_by_its_number_and_leaves_no_receipt_of_its_own(served: Served) -> None:
    run = served.runs[-2]
    end = served.asked(run=run, limit="7")
    first = served.asked(run=run, limit="1000", before=end["before"])
    whole = served.asked(run=run, all="true")

    assert end["total"] == first["total"] == BEFORE - 2
    assert [*first["messages"], *end["messages"]] == whole["messages"]
    served.asked(run=served.runs[-4])  # once its receipt is there, the others are
    until(lambda: served.receipts(served.runs[-4]) == 1)
    assert served.receipts(run) == 1
