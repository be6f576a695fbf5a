"""Who saw some words: every run whose input held them, every session with them, every chat they went to."""

import random
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_actors.calls.service.callers import Caller
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.forking.carrying import carry_on
from intersession_events.facts import DeliveryDone, RunStarted
from support.any_log import Logs
from support.as_caller import called_by
from support.doors.command_line import ran
from support.running import SEES_ALL, WAIT, merged, wait_for_number

MAIN, RESEARCH, DESK = "agent:main:main", "agent:research:main", "agent:desk:main"
WORDS: Final = [
    "anchor",
    "basalt",
    "cobalt",
    "drizzle",
    "ember",
    "fjord",
    "garnet",
    "heron",
    "ibis",
    "jasper",
    "kelp",
    "lagoon",
]
CONFIG: dict[str, Any] = merged(
    SEES_ALL,
    {
        "session": {"agentToAgent": {"maxPingPongTurns": 1}},
        "agents": {"defaults": {"contextTokens": 4_000, "subagents": {"allowAgents": ["*"]}}},
    },
)
PADDING: Final = "and so on, as ever in this weather, " * 12


def played(store: str, seed: int, messages: int) -> SessionSystem:
    """Return a system in which agents said words as chance had it: to people, to each other, to children; some in summaries."""
    chance = random.Random(seed)  # noqa: S311 - the same each time

    def some() -> str:
        return " ".join(chance.choices(WORDS, k=3))

    def speak(turn: Turn) -> str:
        if turn.step == "compaction":
            said = re.findall("|".join(WORDS), str(turn.shown[0].content))
            return f"Earlier: {' '.join(said[:4])}."
        if turn.step != "message":
            return f"well, {some()}"
        choices: list[tuple[str, dict[str, Any]]] = [
            ("sessions_send", {"agentId": "research", "message": f"Say {some()}", "timeoutSeconds": 0}),
            ("sessions_spawn", {"task": f"use {some()}", "context": chance.choice(["fork", "isolated"])}),
            ("sessions_history", {"sessionKey": chance.choice([MAIN, RESEARCH]), "limit": 3}),
            *[("", {})] * 4,
        ]
        tool, given = chance.choice(choices)
        if tool:
            turn.tools.call(tool, given)
        if turn.attempt == 1 and chance.random() < (0.5 if tool else 0.1):
            raise ValueError("This model's maximum context length is 900 tokens")
        if not tool and chance.random() < 0.1:
            raise ValueError(some())
        return f"Noted {some()}, {PADDING if chance.random() < 0.6 else ''}"

    agents = dict.fromkeys(("main", "research", "desk"), speak)
    system = SessionSystem(store, agents=agents, channels={"telegram": MemoryChannel()}, config=CONFIG)
    for number in range(messages):
        agent = chance.choice(["main", "main", "research", "desk"])
        system.inbound(
            channel="telegram",
            chat_id=agent,
            sender="ada",
            text=f"{number}. {some()} {PADDING}",
            agent_id=agent,
            wait=WAIT,
        )
        if chance.random() < 0.04:
            system.gateway.call("sessions.reset", {"key": f"agent:{agent}:main"})
    carry_on(system.service, "", timeout=WAIT)
    return system


def given_to(system: SessionSystem) -> dict[tuple[str, int], str]:
    """Return what each attempt of each run was given, as its lens has it."""
    return {
        (event.run_id, event.attempt): " ".join(
            system.debug.lens(event.run_id, event.attempt, dialect="prompt", all=True)
            .get("prompt", "")
            .split()
        )
        for event in (recorded.event for recorded in system.log.all())
        if isinstance(event, RunStarted)
    }


def seen(debug: Debugger, words: str, limit: int = 1000) -> list[Any]:
    page = debug.origin(words, seen=True, limit=limit)
    found = [*page["seen"]]
    while page["cursor"] is not None:
        page = debug.origin(words, seen=True, limit=limit, cursor=page["cursor"])
        assert "sessions" not in page
        found += page["seen"]
    return found


def check(system: SessionSystem, phrases: list[str]) -> int:
    """Compare with the lens of each run who was given some phrases; return how often one was given."""
    given = given_to(system)
    times = 0
    for phrase in phrases:
        last: dict[str, int] = {}
        for (run, attempt), prompt in given.items():
            if phrase in prompt.casefold():
                last[run] = max(attempt, last.get(run, 0))
        found = seen(system.debug, phrase)
        assert {one["runId"]: one["attempt"] for one in found} == last, phrase
        places = [one["position"] for one in found]
        assert places == sorted(places, reverse=True)
        times += len(found)
    return times


@pytest.mark.ci
@pytest.mark.clause("ANS-3", "LENS-1")
def test_who_was_given_words_is_what_the_lens_of_each_run_says(log_url: str) -> None:
    system = played(log_url, 5, 18)
    with system:
        assert check(system, [f"{one} {other}" for one in WORDS[:3] for other in WORDS[:6]]) > 3


@pytest.mark.clause("ANS-3", "LENS-1")
@pytest.mark.parametrize(
    "messages", [pytest.param(30, marks=pytest.mark.ci), pytest.param(200, marks=pytest.mark.nightly)]
)
def test_who_was_given_words_is_what_the_lens_says_in_a_log_of_many_runs(log_url: str, messages: int) -> None:
    system = played(log_url, 1, messages)
    with system:
        assert check(system, [f"{one} {other}" for one in WORDS for other in WORDS[:2]]) > 50
        kinds = {part for word in WORDS for one in seen(system.debug, word, 50) for part in one["within"]}
        assert kinds >= {"transcript", "summary", "message"}


@pytest.mark.clause("ANS-3")
def test_what_an_attempt_had_done_is_in_the_input_of_the_next(log_url: str) -> None:
    def speak(turn: Turn) -> str:
        if turn.attempt == 1:
            turn.tools.call("sessions_list", {"search": "basalt fjord"})
            raise ValueError("This model's maximum context length is 9000 tokens")
        return "Noted."

    with SessionSystem(log_url, agents={"main": speak}) as system:
        system.inbound(
            channel="telegram", chat_id="1", sender="ada", text="Look.", agent_id="main", wait=WAIT
        )
        (run,) = system.debug.origin("basalt fjord", seen=True)["seen"]

    assert (run["attempt"], run["within"]) == (2, ["partial"])


SECRET: Final = "the harbour code is nine four"


def relay(turn: Turn) -> str:
    """Look research up, or say what came last."""
    if turn.message == "Look it up.":
        found = turn.tools.call("sessions_history", {"sessionKey": RESEARCH, "limit": 10})
        return f"There are {len(found['messages'])} messages."
    return f"You said: {turn.message}"


@pytest.fixture(scope="module")
def store(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> str:
    return logs.at(tmp_path_factory.mktemp("seen"))


@pytest.fixture(scope="module")
def leaked(store: str) -> Iterator[SessionSystem]:
    """Return a system in which research was told a code, main looked it up, and a person read research's history."""
    agents = dict.fromkeys(("main", "research", "desk"), relay)
    with SessionSystem(
        store, agents=agents, channels={"telegram": MemoryChannel()}, config=SEES_ALL
    ) as system:
        for agent, text in (("desk", "It rains."), ("research", SECRET), ("main", "Look it up.")):
            if agent == "main":  # the receipts are stored with what is committed next
                wait_for_number(system, DeliveryDone, 2)
                system.gateway.call("chat.history", {"sessionKey": RESEARCH})
                system.gateway.call("chat.history", {"sessionKey": DESK})
            system.inbound(
                channel="telegram", chat_id=f"of-{agent}", sender="ada", text=text, agent_id=agent, wait=WAIT
            )
        wait_for_number(system, DeliveryDone, 3)
        yield system


@pytest.mark.clause("ANS-3")
def test_sessions_chats_and_looks_say_how_words_came_to_them(leaked: SessionSystem) -> None:
    found = leaked.debug.origin(SECRET, seen=True)

    ways = {one["sessionKey"]: (one["ways"], one.get("tools")) for one in found["sessions"]}
    assert ways == {RESEARCH: (["told", "own"], None), MAIN: (["search"], ["sessions_history"])}
    research = found["sessions"][0]
    assert research["count"] == 2
    assert research["first"]["position"] < research["last"]["position"]
    (chat,) = found["outside"]
    assert (chat["route"]["to"], chat["sessions"], chat["states"]) == ("of-research", [RESEARCH], {"done": 1})
    (look,) = found["looks"]
    assert (look["who"], look["call"], look["sessions"]) == ("operator", "chat.history", [RESEARCH])
    assert {one["sessionKey"] for one in found["seen"]} == {RESEARCH}
    begun = found["first"]
    assert begun is not None
    past = leaked.debug.origin(SECRET, seen=True, at=begun["position"])
    assert [one["count"] for one in past["sessions"]] == [1]
    assert (past["outside"], past["looks"], past["seen"]) == ([], [], [])


@pytest.mark.clause("ANS-3", "VIS-6")
def test_a_limited_caller_learns_nothing_of_recipients_that_it_does_not_see(leaked: SessionSystem) -> None:
    def found(agent: str, words: str) -> Any:
        reader = Caller.by_credential("reader", (f"agent:{agent}:*",))
        return called_by(reader, leaked, "debug.origin", {"words": words, "seen": True})

    assert found("desk", SECRET) == found("desk", "the harbour code is one two three")
    main = found("main", SECRET)
    assert [one["sessionKey"] for one in main["sessions"]] == [MAIN]
    assert (main["outside"], main["looks"], main["seen"]) == ([], [], [])


@pytest.mark.clause("ANS-3")
def test_the_command_shows_who_saw_words(store: str, leaked: SessionSystem) -> None:
    assert leaked.debug.origin("nobody said quokka", seen=True)["sessions"] == []
    shown = ran("origin", SECRET, "--seen", "--store", store).out

    assert "given to" in shown
    assert "main: by a look at sessions (sessions_history)" in shown
    assert "telegram:of-research from research: 1 delivered" in shown
    assert "operator by chat.history: research" in shown


@pytest.mark.clause("ANS-3", "ERASE-1")
def test_erased_words_are_found_nowhere_any_more(log_url: str) -> None:
    with SessionSystem(log_url, agents={"main": relay}, channels={"telegram": MemoryChannel()}) as system:
        system.inbound(channel="telegram", chat_id="1", sender="ada", text=SECRET, agent_id="main", wait=WAIT)
        wait_for_number(system, DeliveryDone, 1)
        assert system.debug.origin(SECRET, seen=True)["seen"]
        erased = system.gateway.call("sessions.erase", {"key": MAIN})
        found = system.debug.origin(SECRET, seen=True)

    assert "checkpoint" in erased
    assert (found["first"], found["seen"], found["sessions"], found["outside"]) == (None, [], [], [])
