"""How much a model takes: said by the agent, by the configuration, by the table, or by nobody."""

from typing import Any

import pytest

from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.policy.windows import ModelWindow, has_room_for_tools, reckon, room_for_words


def reckoned(
    said: ModelWindow | None = None, *, asked_for: str | None = None, **config: Any
) -> tuple[int | None, int | None]:
    return reckon(load_config(config).config, "main", asked_for, said)[:2]


SERVED: dict[str, Any] = {
    "providers": {
        "local": {
            "baseUrl": "http://127.0.0.1:1/v1",
            "models": [
                {"id": "small", "contextWindow": 10_000, "maxTokens": 2_000},
                {"id": "odd", "contextWindow": "many"},
            ],
        }
    }
}


@pytest.mark.clause("CTX-1")
@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("gpt-4o-mini-2026-01-01", 128_000),
        ("gpt-4", 8_192),
        ("gpt-4.1-nano", 1_047_576),
        ("openai/gpt-3.5-turbo", 16_385),
        ("claude-sonnet-4", 200_000),
        ("meta-llama/Llama-3.1-8B-Instruct", 131_072),
        ("llama3:8b", 8_192),
        ("our-own-model", 32_768),
    ],
)
def test_a_model_that_is_named_has_the_window_of_the_table_or_a_cautious_one(name: str, window: int) -> None:
    assert reckoned(ModelWindow(model=name))[0] == window


@pytest.mark.clause("CTX-1")
def test_nobody_says_on_which_model_an_agent_is() -> None:
    assert reckoned() == (128_000, 119_808)


@pytest.mark.clause("CTX-1")
def test_what_is_given_goes_before_the_table_and_the_bound_of_the_agent_before_all() -> None:
    bound = {
        "agents": {"defaults": {"contextTokens": 50_000}, "list": [{"id": "main", "contextTokens": 6_000}]}
    }

    assert reckoned(ModelWindow(model="gpt-4", tokens=20_000)) == (20_000, 15_000)
    assert reckoned(ModelWindow(model="gpt-4", tokens=20_000), agents=bound["agents"])[0] == 6_000
    assert reckoned(agents={"defaults": {"contextTokens": 50_000}})[0] == 50_000


@pytest.mark.clause("CTX-1")
def test_the_configured_window_of_the_model_that_is_asked_for_counts() -> None:
    agents = {"defaults": {"model": "local/small"}}

    assert reckoned(agents=agents, models=SERVED) == (10_000, 8_000)
    assert reckoned(asked_for="local/small", models=SERVED) == (10_000, 8_000)
    assert reckoned(ModelWindow(model="small"), models=SERVED) == (10_000, 8_000)
    assert reckoned(asked_for="local/odd", models=SERVED)[0] == 32_768


@pytest.mark.clause("CTX-1")
def test_instructions_and_the_answer_are_taken_off_and_so_are_tools() -> None:
    assert reckoned(ModelWindow(tokens=8_000, instructions=500, answer=1_000)) == (8_000, 6_500)
    assert reckoned(ModelWindow(tokens=8_000, answer=100_000))[1] == 4_000
    assert room_for_words(6_500, 6, None) == 2_000
    assert has_room_for_tools(6_500, 6, None)
    assert not has_room_for_tools(6_500, 6, 5_000)
    assert room_for_words(6_500, 0, 700) == 700


@pytest.mark.clause("CTX-5")
@pytest.mark.parametrize(
    ("said", "config", "asked"),
    [
        (None, {}, False),
        (None, {"agents": {"defaults": {"compaction": {"agent": "clerk"}}}}, True),
        (None, {"agents": {"defaults": {"contextTokens": 9_000}}}, True),
        (None, {"agents": {"defaults": {"model": "local/small"}}, "models": SERVED}, True),
        (ModelWindow(model="gpt-4"), {}, True),
        (ModelWindow(tokens=4_000), {}, True),
        (ModelWindow(model="gpt-4"), {"agents": {"defaults": {"compaction": {"mode": "off"}}}}, False),
    ],
)
def test_an_agent_on_a_model_is_asked_for_summaries_and_code_of_which_nobody_says_so_is_not(
    said: ModelWindow | None, config: dict[str, Any], asked: bool
) -> None:
    assert reckon(load_config(config).config, "main", None, said).compaction is asked
