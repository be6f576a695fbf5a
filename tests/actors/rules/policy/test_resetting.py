"""When is a conversation over by the clock, and what is an owner's command to begin anew?"""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.errors import ConfigError
from intersession_actors.rules.policy.resetting import (
    Due,
    Renewal,
    ResetCommand,
    day_began,
    due,
    parse_reset,
    renewal_of,
)

MINUTE, HOUR = 60_000, 3_600_000
BERLIN = "Europe/Berlin"


def at(text: str, zone: str = BERLIN) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def renewal(session: dict[str, Any], **chat: Any) -> Renewal | None:
    given_chat: dict[str, Any] = {"chat_type": "direct", "in_thread": False, "channel": "telegram"} | chat
    settings = load_config({"session": session}).config.session
    return renewal_of(settings, now_ms=at("2026-06-01T12:00"), **given_chat)


@pytest.mark.clause("RESET-1")
@pytest.mark.parametrize(
    ("now", "began"),
    [
        ("2026-06-01T04:00", "2026-06-01T04:00"),
        ("2026-06-01T03:59", "2026-05-31T04:00"),
        ("2026-03-30T01:00", "2026-03-29T04:00"),  # the clocks skipped an hour that night
        ("2026-10-26T01:00", "2026-10-25T04:00"),
    ],
)
def test_a_day_begins_at_the_hour_of_the_zone(now: str, began: str) -> None:
    assert day_began(at(now), 4, BERLIN) == at(began)


@pytest.mark.clause("RESET-2")
def test_a_skipped_hour_is_the_moment_of_the_change_and_a_repeated_one_counts_once() -> None:
    spring = day_began(at("2026-03-29T12:00"), 2, BERLIN)
    autumn = day_began(at("2026-10-25T12:00"), 2, BERLIN)

    assert spring == at("2026-03-29T03:00")
    assert autumn == at("2026-10-25T02:00")
    assert day_began(autumn + HOUR, 2, BERLIN) == autumn  # when it is two again
    assert day_began(autumn - 1, 2, BERLIN) == at("2026-10-24T02:00")


@pytest.mark.clause("RESET-1")
@given(
    now=st.integers(at("2020-01-01T00:00"), at("2030-01-01T00:00")),
    hour=st.integers(0, 23),
    zone=st.sampled_from(["UTC", BERLIN, "Pacific/Apia", "Pacific/Kiritimati", "Australia/Lord_Howe"]),
)
def test_a_day_of_resets_holds_the_present(now: int, hour: int, zone: str) -> None:
    began = day_began(now, hour, zone)

    assert 0 <= now - began < 26 * HOUR
    assert day_began(began, hour, zone) == began


@pytest.mark.clause("RESET-1")
def test_settings_of_the_kind_and_the_channel_come_before_the_general_ones() -> None:
    session = {
        "reset": {"mode": "daily", "tz": BERLIN},
        "resetByType": {"group": {"mode": "idle", "idleMinutes": 60}, "thread": {"idleMinutes": 5}},
        "resetByChannel": {"discord": {"mode": "idle", "idleMinutes": 1}},
    }
    day = at("2026-06-01T04:00")

    assert renewal(session) == Renewal(day_began_ms=day)
    assert renewal(session, chat_type="channel") == Renewal(idle_ms=HOUR)
    assert renewal(session, chat_type="group", in_thread=True) == Renewal(
        day_began_ms=day, idle_ms=5 * MINUTE
    )
    assert renewal(session, channel="discord") == Renewal(idle_ms=MINUTE)
    assert renewal({"idleMinutes": 3}) == Renewal(idle_ms=3 * MINUTE)
    assert renewal({"reset": {"mode": "idle", "idleMinutes": 0}}) is None
    assert renewal({"resetByType": {"dm": {"idleMinutes": 3}}}) == Renewal(idle_ms=3 * MINUTE)
    assert renewal({}) is None


@pytest.mark.clause("RESET-2")
def test_whichever_comes_first_is_the_reason() -> None:
    both = Renewal(day_began_ms=10 * HOUR, idle_ms=HOUR)

    assert due(both, began_ms=9 * HOUR, said_ms=10 * HOUR - 1, now_ms=10 * HOUR) == Due("daily", 10 * HOUR)
    assert due(both, began_ms=HOUR, said_ms=2 * HOUR, now_ms=11 * HOUR) == Due("idle", 3 * HOUR)
    assert due(both, began_ms=10 * HOUR, said_ms=0, now_ms=11 * HOUR) is None
    assert due(both, began_ms=10 * HOUR, said_ms=0, now_ms=11 * HOUR + 1) == Due("idle", 11 * HOUR)


@pytest.mark.clause("RESET-3")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/new", ResetCommand("/new", "")),
        (" /NEW  hello there ", ResetCommand("/new", "hello there")),
        ("/reset\nline", ResetCommand("/reset", "line")),
        ("/newer", None),
        ("say /new", None),
        ("   ", None),
    ],
)
def test_a_command_is_a_word_of_its_own_at_the_beginning(text: str, found: ResetCommand | None) -> None:
    assert parse_reset(text, ("/new", "/reset")) == found


@pytest.mark.clause("RESET-1")
@pytest.mark.parametrize(
    ("session", "path"),
    [
        ({"reset": {"mode": "weekly"}}, "session.reset.mode"),
        ({"reset": {"mode": "daily", "atHour": 24}}, "session.reset.atHour"),
        ({"reset": {"mode": "daily", "tz": "Mars/Base"}}, "session.reset.tz"),
        ({"reset": {"mode": "daily", "tz": "../etc/passwd"}}, "session.reset.tz"),
        ({"reset": {"mode": "idle"}}, "session.reset.idleMinutes"),
        ({"resetByChannel": {"x": {"mode": "idle"}}}, "session.resetByChannel.x.idleMinutes"),
        ({"resetTriggers": ["/new now"]}, "session.resetTriggers[0]"),
    ],
)
def test_settings_that_can_not_be_kept_are_refused(session: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"session": session})

    assert [problem.path for problem in caught.value.problems] == [path]
