"""A list that its limit meets exactly has nothing behind it, at N-1 it says that there is more; all pages together are the list."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from intersession import Reply, SessionSystem, Turn, Usage
from intersession_events.facts import DeliveryDone
from support.any_log import Logs
from support.running import SEES_ALL, closed_exchange, merged, wait_for_number

MAIN = "agent:main:main"
TWO_TURNS = {"session": {"agentToAgent": {"maxPingPongTurns": 2}, "dmScope": "main"}}

Page = Callable[..., Any]

LISTS: dict[str, tuple[str, dict[str, Any]]] = {
    "runs": ("runs", {}),
    "messages": ("messages", {}),
    "deliveries": ("deliveries", {}),
    "calls": ("calls", {}),
    "access": ("receipts", {}),
    "events": ("events", {}),
    "usage": ("usage", {"by": ["agent"]}),
    "search": ("hits", {"words": "hi"}),
    "told": ("texts", {"person": "x:ann"}),
    "sessions_list": ("sessions", {}),
    "sessions_history": ("messages", {"sessionKey": MAIN}),
    "sessions_search": ("hits", {"query": "hi"}),
}
MORE = {"sessions_list": ("nextCursor", "cursor"), "sessions_history": ("before", "before")}
BACKWARDS = {"sessions_history"}


@pytest.fixture(scope="module")
def system(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionSystem]:
    def answers(turn: Turn) -> Reply:
        turn.record_result(turn.record_call("look", {"at": turn.message}), "look", "hi")
        return Reply(f"hi from {turn.agent_id}", usage=Usage(input=1, output=1))

    agents = {"main": answers, "research": answers}
    url = logs.at(tmp_path_factory.mktemp("limits"))
    with SessionSystem(
        url, agents=agents, channels={"x": lambda _: "id"}, config=merged(SEES_ALL, TWO_TURNS)
    ) as running:
        for number in range(3):
            running.inbound(channel="x", chat_id="ann", text=f"hi {number}", sender="ann", wait=20)
        wait_for_number(running, DeliveryDone, 3)
        asked = {"agentId": "research", "message": "hi there", "timeoutSeconds": 20}
        for _ in range(2):
            closed_exchange(running, running.tools(MAIN).call("sessions_send", asked)["runId"])
            running.tools(MAIN).call("sessions_history", {"sessionKey": "agent:research:main"})
        yield running


def page_of(system: SessionSystem, name: str, fixed: dict[str, Any]) -> Page:
    if name.startswith("sessions_"):
        return lambda **given: system.tools(MAIN).call(name, {**fixed, **given})
    return lambda **given: getattr(system.debug, name)(**fixed, **given)


@pytest.mark.ci
@pytest.mark.clause("ANS-1", "LIST-7", "HIST-4")
@pytest.mark.parametrize("name", LISTS)
def test_a_list_says_that_there_is_more_just_where_there_is(system: SessionSystem, name: str) -> None:
    rows, fixed = LISTS[name]
    cursor, given = MORE.get(name, ("cursor", "cursor"))
    page = page_of(system, name, fixed)
    at = system.log.head()  # receipts of these questions come behind it
    if name in {"access", "events"}:
        page = page_of(system, name, {"until": at})
    whole = page(limit=200)[rows]
    count = len(whole)
    assert count > 1

    for limit, is_more in ((count - 1, True), (count, False), (count + 1, False)):
        found = page(limit=limit)
        assert len(found[rows]) == min(limit, count)
        assert (found.get(cursor) is not None) is is_more, limit
    pages, found = [], page(limit=2)
    while found[rows]:
        pages.append(found[rows])
        if (behind := found.get(cursor)) is None:
            break
        found = page(limit=2, **{given: behind})
    assert found[rows]
    together = [row for one in (reversed(pages) if name in BACKWARDS else pages) for row in one]
    assert together == whole


@pytest.mark.clause("PLACE-3")
def test_a_state_names_the_lists_that_its_limit_cut(system: SessionSystem) -> None:
    """Before: it left out what was older, and nothing said so."""
    whole = system.debug.state(limit=1000)
    assert "more" not in whole
    for of, names in ((None, ("sessions", "runs", "exchanges")), (MAIN, ("runs", "exchanges"))):
        all_: dict[str, Any] = {**system.debug.state(of)}
        for name in names:
            count = len(all_[name])
            for limit, is_cut in ((count - 1, True), (count, False), (count + 1, False)):
                found = system.debug.state(of, limit=limit) if limit else {"more": names}
                assert (name in found.get("more", ())) is is_cut, (of, name, limit)
    assert "more" not in {one["path"] for one in system.debug.state(frm=1, limit=1)["changes"]}
