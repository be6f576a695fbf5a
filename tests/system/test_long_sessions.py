"""Sessions that are longer than their model's window go on: what fits is shown, what is left out is said and recorded."""

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from intersession import MemoryChannel, SessionSystem, Turn, openai_agent
from intersession.cli.commands.doctor import work_findings
from intersession.web.questions.of_sessions import Sessions, sessions
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.running.failures.findings import full_findings
from intersession_events.facts import RunInterrupted, RunStarted, SpawnClosed
from intersession_events.stores.opened import open_log
from support.endpoint import Endpoint, Said, an_endpoint, calling
from support.running import WAIT, wait_for

MAIN = "agent:main:main"
UNSUMMARISED = {"agents": {"defaults": {"compaction": {"mode": "off"}}}}
LONG = "What about the weather in Oslo, and in Bergen, and further north? " * 4


def an_agent(endpoint: Endpoint, **options: Any) -> Any:
    return openai_agent(
        model="tiny", base_url=endpoint.url, api_key="none", client_options={"max_retries": 0}, **options
    )


def a_system(agent: Any, store: str = ":memory:", **options: Any) -> SessionSystem:
    return SessionSystem(store, agents={"main": agent}, channels={"chat": MemoryChannel()}, **options)


def said_to(system: SessionSystem, text: str) -> Any:
    return system.inbound(channel="chat", chat_id="42", sender="ann", text=text, wait=WAIT)


def row_of(system: SessionSystem) -> Any:
    (row,) = system.tools().call("sessions_list", {}).get("sessions", [])
    return row


@pytest.mark.clause("CTX-1", "CTX-2", "CTX-3")
def test_each_of_sixty_messages_is_answered_by_a_model_that_takes_a_thousand_tokens() -> None:
    with an_endpoint(1_000) as endpoint, a_system(an_agent(endpoint), config=UNSUMMARISED) as system:
        answers = [said_to(system, f"{number}. {LONG}") for number in range(60)]

        assert [answer["status"] for answer in answers] == ["ok"] * 60
        assert 1 <= len(endpoint.refused) <= 12
        assert all(
            f"{number}. {LONG}" in str(taken["messages"][-1]) for number, taken in enumerate(endpoint.taken)
        )
        assert "earlier messages of this session are left out here" in str(endpoint.taken[-1]["messages"][0])
        lens = system.debug.lens(answers[-1]["runId"], dialect="openai")
        assert lens["asRecorded"]
        assert lens.get("rendered") == endpoint.taken[-1]["messages"]
        assert lens["leftOut"] is not None
        assert lens["leftOut"]["messages"] > 100
        assert lens.get("total") == 118


@pytest.mark.clause("CTX-1", "LIST-5")
def test_a_window_that_is_known_is_kept_without_a_refusal_and_stands_in_the_list() -> None:
    with an_endpoint(4_000) as endpoint, a_system(an_agent(endpoint, context_tokens=4_000)) as system:
        for number in range(40):
            assert said_to(system, f"{number}. {LONG}")["status"] == "ok"

        assert endpoint.refused == []
        assert len(endpoint.taken[-1]["messages"]) > 10
        row = row_of(system)
        assert row["contextTokens"] == 4_000
        assert row["totalTokens"] < 4_000


@pytest.mark.clause("CTX-1")
def test_the_window_is_that_of_the_configured_model_within_the_bound_of_the_agent() -> None:
    with an_endpoint() as endpoint:
        model = {"id": "tiny", "contextWindow": 9_000, "maxTokens": 1_000}
        config: dict[str, Any] = {
            "models": {"providers": {"local": {"baseUrl": endpoint.url, "models": [model]}}},
            "agents": {"defaults": {"model": "local/tiny"}},
        }
        seen: list[Any] = []
        for bound in (None, 6_000):
            if bound is not None:
                config["agents"]["defaults"]["contextTokens"] = bound
            with SessionSystem(":memory:", config=config, channels={"chat": MemoryChannel()}) as system:
                system.register_agent("main", lambda turn: str(turn.context_tokens))
                seen.append(said_to(system, "hello")["reply"])
                answers = system.gateway.call("sessions.list"), system.gateway.call("health")["sessions"]
                seen += [answer["defaults"]["contextTokens"] for answer in answers]

    assert seen == ["9000", 9_000, 9_000, "6000", 6_000, 6_000]


@pytest.mark.clause("CTX-2", "CTX-3")
def test_a_tool_result_that_is_longer_than_the_window_is_cut_and_the_run_is_answered() -> None:
    def say(request: Said) -> Said:
        last = request["messages"][-1]
        if last["role"] == "user" and "look" in str(last["content"]) and "interrupted" not in str(last):
            return calling("sessions_history", {"sessionKey": "main", "limit": 1})
        return {"content": "Done."}

    with an_endpoint(6_000) as endpoint, a_system(an_agent(endpoint)) as system:
        endpoint.say = say
        said_to(system, "nothing " * 2_000)
        answer = said_to(system, "look")
        again = said_to(system, "and now?")

        assert (answer["status"], answer["reply"]) == ("ok", "Done.")
        assert again["status"] == "ok"
        roles = [message["role"] for message in endpoint.taken[-1]["messages"]]
        assert all(roles[place - 1] == "assistant" for place, role in enumerate(roles) if role == "tool")


@pytest.mark.clause("CTX-2")
def test_a_message_that_is_longer_than_the_window_is_cut_with_a_line_that_says_so() -> None:
    with an_endpoint(2_000) as endpoint, a_system(an_agent(endpoint, context_tokens=2_000)) as system:
        answer = said_to(system, f"begin {'word ' * 20_000} end")

        assert answer["status"] == "ok"
        asked = str(endpoint.taken[-1]["messages"][-1]["content"])
        assert asked.startswith("begin word")
        assert asked.endswith("word  end")
        assert "characters are left out here: it is too long to be shown whole" in asked
        history = system.tools().call("sessions_history", {"sessionKey": "main"})
        assert len(str(history)) > 4_000


@pytest.mark.clause("CTX-3")
def test_a_function_that_raises_what_its_client_raised_is_called_again_with_less() -> None:
    given: list[str] = []

    def agent(turn: Turn) -> str:
        given.append(turn.prompt())
        if len(given[-1]) > 3_000:
            raise ValueError(f"prompt is too long: {len(given[-1])} tokens > 3000 maximum")
        return "fine"

    with a_system(agent) as system:
        answers = [said_to(system, f"{number}. {LONG}")["status"] for number in range(30)]

        assert answers == ["ok"] * 30
        assert any(len(prompt) > 3_000 for prompt in given)


@pytest.mark.clause("CTX-3")
def test_a_server_that_refuses_everything_as_too_long_ends_the_run_after_six_more_attempts() -> None:
    with an_endpoint(0) as endpoint, a_system(an_agent(endpoint)) as system:
        answer = said_to(system, LONG)

        assert answer["status"] == "error"
        assert "maximum context length is 0 tokens" in answer["error"]
        assert len(endpoint.refused) == 7
        endpoint.window = 1_000
        assert said_to(system, "and now?")["status"] == "ok"


@pytest.mark.clause("CTX-2", "SEAL-1")
def test_what_was_left_out_is_the_same_in_a_replay_and_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/log.db"
    with an_endpoint(1_000) as endpoint:
        for _ in range(2):
            with a_system(an_agent(endpoint), store) as system:
                for number in range(20):
                    assert said_to(system, f"{number}. {LONG}")["status"] == "ok"

        with open_log(store, read_only=True) as log:
            starts = [one.event for one in log.all() if isinstance(one.event, RunStarted)]
            refusals = [one.event for one in log.all() if isinstance(one.event, RunInterrupted)]
        with a_system(an_agent(endpoint), store) as system:
            replayed = system.debug.replay()
    assert any(start.fit is not None for start in starts)
    assert refusals
    assert all(refusal.too_long is not None for refusal in refusals)
    assert len({(start.context_hash, start.fit) for start in starts}) == len({s.context_hash for s in starts})
    assert replayed["same"], replayed


@pytest.mark.clause("CTX-3")
def test_a_pydantic_ai_agent_goes_on_too() -> None:
    with an_endpoint(1_000) as endpoint:
        model = OpenAIChatModel("tiny", provider=OpenAIProvider(base_url=endpoint.url, api_key="none"))
        with a_system(Agent(model)) as system:
            answers = [said_to(system, f"{number}. {LONG}")["status"] for number in range(20)]

    assert answers == ["ok"] * 20


@pytest.mark.clause("CTX-2", "SPAWN-9")
def test_a_sub_agent_whose_task_and_an_announce_whose_quotes_are_too_long_are_answered() -> None:
    asked: list[str] = []

    def say(request: Said) -> Said:
        asked.append(str(request["messages"]))
        roles = [message["role"] for message in request["messages"]]
        if "Spawn it" in str(request["messages"][-1]) and roles[-1] == "user":
            return calling("sessions_spawn", {"task": "dig " * 5_000})
        return {"content": "dug " * (3_000 if "You are a sub-agent" in asked[-1] else 1)}

    with an_endpoint(3_500) as endpoint, a_system(an_agent(endpoint)) as system:
        endpoint.say = say
        assert said_to(system, "Spawn it")["status"] == "ok"
        closed = wait_for(system, SpawnClosed)

    assert closed.reason == "announced"
    announce = next(said for said in asked if "Your task as a sub-agent is over" in said)
    assert "characters are left out here" in announce
    assert "To say nothing, answer exactly ANNOUNCE_SKIP" in announce


@pytest.mark.clause("CTX-4")
def test_a_session_that_fills_its_window_is_named_by_doctor_status_and_the_page(tmp_path: Path) -> None:
    told: list[str] = []
    filled: list[int] = []
    with (
        an_endpoint() as endpoint,
        a_system(
            an_agent(endpoint, context_tokens=8_000), f"sqlite:///{tmp_path}/log.db", config=UNSUMMARISED
        ) as system,
    ):
        reader = system.service.reader
        for number in range(30):
            said_to(system, f"{number}. {LONG}")
            codes = [found["code"] for found in system.gateway.call("status", {})["findings"]]
            told += [code for code in codes if code.startswith("sessions_") and code not in told]
            (row,) = sessions(View(reader), Sessions())["sessions"]
            filled.append(row["filled"])
        found = [finding.what for finding in work_findings(reader, at_work=True)]

    assert told == ["sessions_filling", "sessions_full"]
    assert filled == sorted(filled)
    assert filled[0] < 80
    assert filled[-1] > 100
    full = "of 1 sessions the oldest messages are left out, since their model takes no more: agent:main:main"
    assert full in found


@pytest.mark.clause("CTX-4")
def test_a_session_is_named_from_eighty_percent_on_and_otherwise_once_messages_are_left_out() -> None:
    filled = [("unknown", None), ("quiet", 79), ("near", 80), ("whole", 100), ("over", 101)]
    assert [(one.code, one.what) for one in full_findings(filled)] == [
        (
            "sessions_full",
            "of 1 sessions the oldest messages are left out, since their model takes no more: over",
        ),
        ("sessions_filling", "2 sessions fill the window of their model: near (80 %), whole (100 %)"),
    ]
