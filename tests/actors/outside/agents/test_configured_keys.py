"""A key that a configured endpoint asks for is missed at the start and by doctor, not by the first person who writes."""

from typing import Any

import pytest

from intersession.cli.commands.doctor import setting_findings
from intersession_actors.outside.agents.configured import configured_agents
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.errors import ConfigError


def a_config(url: str, **provider: Any) -> Config:
    config = {
        "agents": {"defaults": {"model": "remote/one"}},
        "models": {"providers": {"remote": {"baseUrl": url, "models": [{"id": "one"}], **provider}}},
    }
    return load_config(config).config


@pytest.mark.parametrize("key", [None, "", " "])
@pytest.mark.parametrize("url", ["https://api.openai.com/v1", "https://openrouter.ai/api/v1"])
def test_an_endpoint_that_answers_nobody_without_a_key_is_refused_at_the_start(
    url: str, key: str | None
) -> None:
    with pytest.raises(ConfigError, match=r"models\.providers\.remote\.apiKey.*is missing"):
        configured_agents(a_config(url, **({} if key is None else {"apiKey": key})))


def test_an_endpoint_elsewhere_that_may_ask_for_a_key_is_named_at_the_start_and_by_doctor() -> None:
    config = a_config("https://models.example.com/v1")

    (notice,) = configured_agents(config).notices
    codes = [finding.code for finding in setting_findings(config, ())]

    assert "models.providers.remote.apiKey is missing, and models.example.com may answer nobody" in notice
    assert codes == ["provider_without_key"]


@pytest.mark.parametrize(
    ("url", "given"),
    [
        ("http://127.0.0.1:11434/v1", {}),
        ("http://localhost:8000/v1", {}),
        ("http://10.0.0.5:8000/v1", {}),
        ("http://ollama:11434/v1", {}),
        ("https://api.openai.com/v1", {"apiKey": "sk-one"}),
        ("https://models.example.com/v1", {"headers": {"x-api-key": "one"}}),
    ],
)
def test_an_endpoint_of_ones_own_or_with_a_key_is_none_of_it(url: str, given: dict[str, Any]) -> None:
    config = a_config(url, **given)

    assert configured_agents(config).notices == ()
    assert list(setting_findings(config, ())) == []


@pytest.mark.clause("STREAM-1")
def test_a_provider_says_whether_its_answers_are_shown_while_they_are_said() -> None:
    with pytest.raises(ConfigError, match=r"models\.providers\.remote\.stream: is 'yes', give true or false"):
        configured_agents(a_config("http://localhost:1/v1", stream="yes"))
    assert configured_agents(a_config("http://localhost:1/v1", stream=True)).agents
