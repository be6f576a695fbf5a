"""May a session's words go outside?"""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.config.session import SendPolicy
from intersession_actors.rules.policy.sending import Speak, Speech, Verdict, judge_send, parse_send_command
from intersession_events.basics.keys.key import SessionKey

GROUP = SessionKey.parse("agent:main:discord:group:42:thread:7")
JOB = SessionKey.cron("main", "nightly")


def policy(*rules: dict[str, Any], default: str | None = None) -> SendPolicy:
    given_policy: dict[str, Any] = {"rules": list(rules)}
    if default is not None:
        given_policy["default"] = default
    return load_config({"session": {"sendPolicy": given_policy}}).config.session.send_policy


def judged(of: SendPolicy, key: SessionKey, **known: Any) -> Verdict:
    return judge_send(Speak(key=str(key)), Speech(default=of.default, rules=of.rules, **known))


def rule(action: str, **match: str) -> dict[str, Any]:
    return {"action": action, "match": match}


@pytest.mark.clause("POL-1")
def test_without_a_policy_words_go_out() -> None:
    verdict = judged(policy(), GROUP)

    assert verdict.allowed
    assert verdict.rule == "no rule of session.sendPolicy matches: allow"


@pytest.mark.clause("POL-1")
def test_a_matching_deny_wins_over_a_matching_allow_in_any_order() -> None:
    rules = [rule("allow", channel="discord"), rule("deny", chatType="group"), rule("allow")]
    for order in permutations(rules):
        verdict = judged(policy(*order, default="allow"), GROUP)

        assert not verdict.allowed
        assert verdict.rule == f"session.sendPolicy.rules[{order.index(rules[1])}]: deny chatType 'group'"


@pytest.mark.clause("POL-1")
def test_a_matching_allow_wins_over_the_default_and_the_default_over_nothing() -> None:
    narrow = policy(rule("allow", channel="discord"), default="deny")

    assert judged(narrow, GROUP).rule == "session.sendPolicy.rules[0]: allow channel 'discord'"
    assert judged(narrow, JOB).rule == "session.sendPolicy.default: deny"


@pytest.mark.clause("POL-1")
@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ({"channel": "discord"}, True),
        ({"channel": "Discord"}, True),
        ({"channel": "telegram"}, False),
        ({"chatType": "group"}, True),
        ({"chatType": "direct"}, False),
        ({"keyPrefix": "discord:"}, True),
        ({"keyPrefix": "agent:main:"}, True),
        ({"keyPrefix": "agent:main:discord:"}, True),
        ({"keyPrefix": "AGENT:MAIN:Disc:"}, False),
        ({"keyPrefix": "cron:"}, False),
        ({"rawKeyPrefix": "discord:"}, False),
        ({"rawKeyPrefix": "agent:main:discord:group:"}, True),
        ({"channel": "discord", "chatType": "channel"}, False),
        ({"channel": "discord", "keyPrefix": "discord:group:"}, True),
        ({}, True),
    ],
)
def test_a_rule_matches_where_all_that_it_names_does(match: dict[str, str], matches: bool) -> None:
    assert judged(policy(rule("deny", **match)), GROUP).allowed is not matches


@pytest.mark.clause("POL-1")
def test_what_is_recorded_on_the_session_counts_more_than_its_key() -> None:
    deny = policy(rule("deny", channel="telegram", chatType="direct"))

    assert judged(deny, SessionKey.main("main")).allowed
    assert not judged(deny, SessionKey.main("main"), channel="telegram", chat_type="direct").allowed
    assert not judged(deny, GROUP, channel="Telegram", chat_type="direct").allowed


@pytest.mark.clause("POL-2")
@pytest.mark.parametrize("override", ["allow", "deny"])
def test_the_sessions_own_setting_beats_every_rule(override: str) -> None:
    for other in ("allow", "deny"):
        verdict = judged(policy(rule(other), default=other), GROUP, override=override)

        assert verdict.action == override
        assert verdict.rule == f"the session's own sendPolicy: {override}"


@pytest.mark.clause("POL-2")
@pytest.mark.parametrize(
    ("text", "asks"), [("/send on", "allow"), ("/send off", "deny"), ("/send inherit", "inherit")]
)
def test_the_command_is_the_whole_message(text: str, asks: str) -> None:
    assert parse_send_command(text) == asks


@pytest.mark.clause("POL-2")
@pytest.mark.parametrize(
    "text",
    [
        "/send",
        "/send On",
        "/SEND on",
        " /send on",
        "/send on ",
        "/send on\n",
        "/send  on",
        "/send on please",
        "/send maybe",
    ],
)
def test_anything_around_the_command_makes_it_text(text: str) -> None:
    assert parse_send_command(text) is None


@pytest.mark.clause("POL-2")
@given(st.text())
def test_no_other_text_is_a_command(text: str) -> None:
    assert (parse_send_command(text) is None) is (text not in {"/send on", "/send off", "/send inherit"})
