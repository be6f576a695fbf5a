"""What is typed for a key, in bulk: forms put together of good and bad parts, each the session it says or none."""

import random
from collections.abc import Iterator

import pytest

from intersession_actors.rules.policy.access import SeeSession, Sight, judge_access
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.keys.references import KeyReference, refer

_PARTS = (
    *(
        "agent",
        "Agent",
        "AGENT",
        "main",
        "MAIN",
        "global",
        "unknown",
        "subagent",
        "acp",
        "cron",
        "hook",
        "node-1",
    ),
    *(
        "group",
        "channel",
        "direct",
        "thread",
        "topic",
        "run",
        "telegram",
        "Discord",
        "whatsapp",
        "ops",
        "research",
    ),
    *(
        "42",
        "-100123",
        "120363@g.us",
        "a_b-c",
        "x" * 64,
        "x" * 65,
        "é",
        "\u0130",
        "\u017f",
        "\u212a",
        "\u200b",
        "\u202e",
        "\x00",
    ),
    *("", " ", "\t", "\n", "\u00a0", "/", "..", "%3A", "*", "[", "\U0001f600", "\ufeff", "\ufb00", "\uff11"),
    *("2c5ea4c0-4067-41e9-8bad-9b1deb4d3b7d", "2C5EA4C0-4067-41E9-8BAD-9B1DEB4D3B7D", "0" * 600),
)
_FORMS = (
    ("agent", "main", "main"),
    ("agent", "ops", "telegram", "group", "-100"),
    ("agent", "main", "discord", "channel", "7", "thread", "9"),
    ("agent", "main", "telegram", "bot", "direct", "42"),
    ("agent", "ops", "cron", "daily", "run", "1"),
    ("agent", "main", "subagent", "2c5ea4c0-4067-41e9-8bad-9b1deb4d3b7d"),
    ("cron", "daily"),
    ("telegram", "group", "5"),
    ("main",),
)
_SEES_ITS_AGENT = Sight(requester="agent:main:main", visibility="agent")


def typed(number: int, seed: int = 0) -> Iterator[str]:
    """Yield so many texts that are keys, nearly keys, or made of the same parts."""
    chance = random.Random(seed)  # noqa: S311 - tests want the same again
    for _ in range(number):
        parts = list(chance.choice(_FORMS))
        for _ in range(int(chance.random() * 4)):
            at = int(chance.random() * (len(parts) + 1))
            match int(chance.random() * 5):
                case 0:
                    parts.insert(at, chance.choice(_PARTS))
                case 1 if parts:
                    parts[at % len(parts)] = chance.choice(_PARTS)
                case 2 if parts:
                    parts[at % len(parts)] += chance.choice(_PARTS)
                case 3 if parts:
                    del parts[at % len(parts)]
                case _:
                    parts = [part.upper() if chance.random() < 0.5 else part for part in parts]
        yield ":".join(parts)


def meant(text: str) -> SessionKey | None:
    try:
        found = refer(text, requester_agent="main", default_agent="main", main_key="main", scope="per-sender")
    except InvalidKey:
        return None
    return found.key if isinstance(found, KeyReference) else None


def check(number: int, seed: int) -> int:
    """Check the laws on so many texts; return how many were keys."""
    keys = 0
    for text in typed(number, seed):
        key = meant(text)
        if key is None:
            continue
        keys += 1
        canonical = str(key)
        assert SessionKey.parse(canonical) == key, text
        assert meant(canonical) == key, text
        by_typed = SeeSession(operation="history", key=str(key))
        by_canonical = SeeSession(operation="history", key=str(meant(canonical)))
        assert judge_access(by_typed, _SEES_ITS_AGENT) == judge_access(by_canonical, _SEES_ITS_AGENT), text
    return keys


@pytest.mark.clause("KEY-6", "KEY-8", "X3")
def test_what_is_typed_is_the_session_it_says_or_none() -> None:
    assert check(20_000, seed=1) > 5_000


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.clause("KEY-6", "KEY-8", "X3")
def test_nor_do_a_million_texts_name_two_sessions() -> None:
    assert check(1_000_000, seed=2) > 250_000
