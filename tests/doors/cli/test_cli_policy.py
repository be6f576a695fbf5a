"""`config check` and `policy test` say beforehand what a start, or a send, would say."""

from pathlib import Path

import pytest

from intersession_events.facts import SessionPatched
from support.doors.command_line import ran
from support.story import MAIN, Story

POLICY = """{
  session: { sendPolicy: { default: "allow", rules: [
    { action: "deny", match: { channel: "discord", chatType: "group" } },
    { action: "deny", match: { keyPrefix: "cron:" } },
  ] } },
}"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "policy.json5"
    path.write_text(POLICY, encoding="utf-8")
    return path


@pytest.mark.clause("CFG-1")
def test_a_good_configuration_is_good_and_its_notices_are_told(tmp_path: Path) -> None:
    file = tmp_path / "c.json5"
    file.write_text("{session: {agentToAgent: {maxPingPongTurns: 9}}, plugins: {}}", encoding="utf-8")

    done = ran("config", "check", file)
    value = ran("config", "check", file, "--json").json

    assert done.exit_code == 0
    assert done.out.startswith("good: ")
    assert (value["ok"], value["problems"], len(value["notices"])) == (True, [], 2)


@pytest.mark.clause("CFG-1")
def test_every_problem_of_a_bad_configuration_is_told_with_its_path(tmp_path: Path) -> None:
    file = tmp_path / "c.json5"
    file.write_text("{session: {scope: 'galaxy'}, tols: {}}", encoding="utf-8")

    done = ran("config", "check", file)
    value = ran("config", "check", file, "--json")

    assert (done.exit_code, value.exit_code) == (1, 1)
    assert {problem["path"] for problem in value.json["problems"]} == {"session.scope", "tols"}
    assert all(path in done.out for path in ("session.scope", "tols"))


@pytest.mark.clause("POL-4")
@pytest.mark.parametrize(
    ("tokens", "exit_code", "rule"),
    [
        (("agent:main:discord:group:lab",), 1, "rules[0]"),
        (("agent:main:telegram:group:lab",), 0, "default"),
        (("agent:main:telegram:group:lab", "--channel", "discord"), 1, "rules[0]"),
        (("main", "--channel", "discord", "--chat-type", "group"), 1, "rules[0]"),
        (("agent:main:cron:daily",), 1, "rules[1]"),
        (("agent:main:cron:daily", "--override", "allow"), 0, "the session's own"),
        (("main", "--override", "deny"), 1, "the session's own"),
    ],
)
def test_policy_test_says_the_verdict_and_the_rule(
    config: Path, tokens: tuple[str, ...], exit_code: int, rule: str
) -> None:
    done = ran("policy", "test", *tokens, "--config", config)
    value = ran("policy", "test", *tokens, "--config", config, "--json").json

    assert done.exit_code == exit_code
    assert value["action"] == ("deny" if exit_code else "allow")
    assert rule in value["rule"]
    assert value["rule"] in done.out


@pytest.mark.clause("POL-2", "POL-4")
def test_with_a_log_policy_test_knows_the_sessions_own_setting(config: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    story = Story(store)
    story.open()
    story.put(f"session:{MAIN}", SessionPatched(values={"sendPolicy": "deny"}))
    story.close()

    known = ran("policy", "test", "main", "--config", config, "--store", store, "--json")
    unknown = ran("policy", "test", "agent:main:other", "--config", config, "--store", store, "--json")

    assert (known.exit_code, known.json["action"]) == (1, "deny")
    assert (unknown.exit_code, unknown.json["code"]) == (1, "not_visible")


@pytest.mark.parametrize("session", ["no key", "agent:", "00000000-0000-4000-8000-000000000000"])
def test_what_is_no_key_is_refused(session: str) -> None:
    done = ran("policy", "test", session, "--json")

    assert (done.exit_code, done.json["code"]) == (1, "invalid_key")
