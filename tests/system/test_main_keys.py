"""A main session keeps its name: a start under which it would have none is refused (KEY-2, finding A7)."""

from typing import Any

import pytest

from intersession import ConfigError
from support.running import Booth

GLOBAL: dict[str, Any] = {"session": {"scope": "global"}}


def keyed(main_key: str) -> dict[str, Any]:
    return {"session": {"mainKey": main_key}}


def agents(*names: str) -> dict[str, Any]:
    return {"agents": {"list": [{"id": name, "default": number == 0} for number, name in enumerate(names)]}}


def say(system: Any, **given: Any) -> str:
    answer = system.inbound(channel="x", chat_id="1", sender="1", text="hi", deliver=False, **given)
    return str(answer["sessionKey"])


@pytest.mark.clause("KEY-2", "CFG-1")
@pytest.mark.parametrize(("before", "after"), [("main", "home"), ("home", "main"), ("home", "work")])
def test_another_main_key_is_refused_where_it_would_orphan_a_session(
    booth: Booth, before: str, after: str
) -> None:
    first = booth.start({}, None, agents("main"), keyed(before))
    assert say(first) == f"agent:main:{before}"
    first.close()

    with pytest.raises(ConfigError) as refused:
        booth.start({}, None, agents("main"), keyed(after))
    second = booth.start({}, None, agents("main"), keyed(before))

    assert refused.value.path == "session.mainKey"
    assert f"agent:main:{before}" in str(refused.value)
    assert f"set it back to {before!r}" in str(refused.value)
    assert say(second) == f"agent:main:{before}", "the session goes on"


@pytest.mark.clause("KEY-2")
def test_a_main_key_can_be_chosen_as_long_as_there_is_no_main_session(booth: Booth) -> None:
    first = booth.start({}, None, agents("main"))
    say(first, chat_type="group")
    first.close()

    second = booth.start({}, None, agents("main"), keyed("home"))

    assert say(second) == "agent:main:home"


@pytest.mark.clause("KEY-2", "CFG-4")
def test_a_hot_reading_with_another_main_key_is_refused(booth: Booth) -> None:
    system = booth.start({}, None, agents("main"))
    say(system)

    with pytest.raises(ConfigError, match=r"session\.mainKey"):
        system.reload({**agents("main"), **keyed("home")})

    assert say(system) == "agent:main:main"
    assert "session.mainKey" in str(system.status()["configError"])


@pytest.mark.clause("KEY-4")
def test_the_one_session_of_all_is_not_left_behind_by_another_default_agent(booth: Booth) -> None:
    first = booth.start({}, None, agents("ada", "bob"), GLOBAL)
    assert say(first) == "agent:ada:main"
    first.close()

    with pytest.raises(ConfigError, match=r"agents\.list.*agent:ada:main"):
        booth.start({}, None, agents("bob", "ada"), GLOBAL)
