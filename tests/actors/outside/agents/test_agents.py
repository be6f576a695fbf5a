from pathlib import Path

import pytest

from intersession_actors.outside.agents.agents import ScriptEnded, as_function, echo, scripted
from intersession_actors.outside.agents.turn import Reply, ToolBox, Turn
from intersession_actors.running.host.extras import imported
from intersession_events.basics.errors import MissingExtra
from intersession_events.facts import Message, Step


def turn(text: str = "hello", *, key: str = "agent:main:main", step: Step = "message") -> Turn:
    asked = Message(id="m", role="user", content=text, timestamp=1)
    return Turn(agent_id="main", session_key=key, step=step, asked=asked, run_id="run")


def test_a_scripted_agent_says_its_lines_in_order_in_each_session() -> None:
    agent = scripted(["one", None, Reply("three"), lambda turn: turn.message])

    assert [agent(turn("four")) for _ in range(4)] == ["one", None, Reply("three"), "four"]
    assert agent(turn(key="agent:other:main")) == "one"


def test_a_scripted_agent_raises_the_exceptions_of_its_script() -> None:
    agent = scripted([ValueError("bad"), KeyError])

    with pytest.raises(ValueError, match="bad"):
        agent(turn())
    with pytest.raises(KeyError):
        agent(turn())


def test_a_scripted_agent_without_a_line_left_says_whose_script_is_over() -> None:
    agent = scripted(["one"])
    agent(turn())

    with pytest.raises(ScriptEnded, match="agent:main:main has 1 lines; turn 2 has none"):
        agent(turn())


def test_a_script_can_differ_by_session() -> None:
    agent = scripted({"agent:a:main": ["a"], "agent:b:main": ["b"]})

    assert agent(turn(key="agent:b:main")) == "b"
    with pytest.raises(ScriptEnded):
        agent(turn(key="agent:c:main"))


def test_an_echo_gives_messages_back_and_is_silent_otherwise() -> None:
    agent = echo("you said: ")

    assert agent(turn("hello")) == "you said: hello"
    assert agent(turn("hello", step="reply")) == Reply.skip()
    assert agent(turn("hello", step="announce")) == Reply.skip()


def test_a_function_is_its_own_form() -> None:
    agent = echo()
    assert as_function(agent) is agent


def test_a_missing_extra_is_an_error_that_names_it() -> None:
    with pytest.raises(
        MissingExtra, match=r"a thing needs its-library: pip install 'intersession\[models\]'"
    ) as missing:
        imported("intersession_actors.not_there", what="a thing", library="its-library", extra="models")
    assert missing.value.extra == "models"
    assert isinstance(missing.value, ImportError)


@pytest.mark.parametrize("line", ["from h11 import NoSuchPart", "import h11.no_such_part"])
def test_a_library_with_other_parts_than_those_that_were_tried_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (tmp_path / "leans_on_h11.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(MissingExtra, match=r"a thing needs an older or newer h11 than is installed \("):
        imported("leans_on_h11", what="a thing", library="litestar", extra="gateway")


async def test_a_turn_without_tools_refuses_calls() -> None:
    tools = ToolBox()

    assert tools.schemas() == []
    assert tools.call("sessions_list", {}) == {
        "status": "error",
        "error": "there is no tool 'sessions_list' here",
    }
    assert await tools.acall("sessions_list", {}) == tools.call("sessions_list", {})
