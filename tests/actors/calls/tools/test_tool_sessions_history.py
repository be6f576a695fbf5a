"""`sessions_history`: every clause of it, on a real log."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from intersession_actors.calls.service.resolve import TargetRefused
from intersession_actors.calls.tools.sessions_history import read_history
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import ImageBlock, SessionArchived, SessionReset, TextBlock, ToolCallBlock
from support.any_log import Logs
from support.story import MAIN, PERSON, Story

AGENT = {"tools": {"sessions": {"visibility": "agent"}}}
AGENTS = {"agents": {"list": [{"id": "main"}, {"id": "ops"}]}}
GROUP = "agent:main:telegram:group:-100"
CHILD = "agent:main:subagent:6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
OPS = "agent:ops:main"
SAID = "password=hunter2hunter2hunter2"


@pytest.fixture
def story(passing_url: str) -> Iterator[Story]:
    told = Story(passing_url)
    told.open(MAIN)
    told.open(GROUP)
    yield told
    told.close()


def read(
    story: Story,
    key: str,
    requester: str | None = MAIN,
    config: dict[str, Any] | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    reader = story.reader({**AGENTS, **(AGENT if config is None else config)})
    answer, summary = read_history(reader, reader.requester(requester), {"sessionKey": key, **arguments})
    assert len(summary.keys) == 1
    return answer


def texts(answer: dict[str, Any]) -> list[str]:
    return [message["content"] for message in answer["messages"]]


def refusal(
    story: Story, key: str, requester: str | None = MAIN, config: dict[str, Any] | None = None
) -> dict[str, str]:
    with pytest.raises(TargetRefused) as caught:
        read(story, key, requester, config)
    assert caught.value.given == key
    return caught.value.as_result()


@pytest.mark.clause("HIST-1")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"limit": "1"}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": float("inf")}, "limit"),
        ({"includeTools": 1}, "includeTools"),
        ({"asOf": 10_000}, "asOf"),
        ({"asOf": "noon"}, "asOf"),
        ({"before": "nobody"}, "before"),
        ({"before": 1}, "before"),
        ({"session_key": "main"}, "session_key"),
        ({"sessionKey": None}, "sessionKey"),
        ({"sessionKey": "\ud800"}, "sessionKey"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(story: Story, arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(ToolRefused) as caught:
        read(story, **{"key": "main", **arguments})
    assert (caught.value.code, caught.value.error.split(":")[0]) == ("invalid_request", field)


@pytest.mark.clause("HIST-1")
def test_the_session_key_is_required(story: Story) -> None:
    reader = story.reader()
    with pytest.raises(ToolRefused, match=r"^sessionKey: required"):
        read_history(reader, reader.requester(None), {})


@pytest.fixture(scope="module")
def long_story(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A session with more messages than are ever answered with; it is only read."""
    told = Story(logs.passing(tmp_path_factory.mktemp("long")))
    told.open(MAIN)
    for _ in range(1005):
        told.say(MAIN, "x")
    yield told
    told.close()


@pytest.mark.clause("HIST-1")
@pytest.mark.parametrize(
    ("limit", "count"), [(None, 200), (2.9, 2), (0, 1), (-5, 1), (9e9, 1000), (1000, 1000)]
)
def test_limits_are_floored_and_clamped(long_story: Story, limit: float | None, count: int) -> None:
    answer = read(long_story, "main", limit=limit)
    assert len(answer["messages"]) + answer["droppedMessages"] == count


@pytest.mark.clause("HIST-2")
def test_tool_results_come_only_when_asked_for_and_count_only_then(story: Story) -> None:
    for text in ("a", "b"):
        story.say(MAIN, text)
        story.say(MAIN, f"{text} result", role="toolResult", tool_call_id="1", tool_name="t", is_error=False)
    assert texts(read(story, "main", limit=2)) == ["a", "b"]
    assert texts(read(story, "main", limit=2, includeTools=True)) == ["b", "b result"]


@pytest.mark.clause("HIST-3", "HIST-4")
def test_an_answer_that_needed_no_cut_equals_what_was_stored_and_says_so(story: Story) -> None:
    message_id = story.say(MAIN, "hello", provenance=PERSON, extra='{"own":[1]}')
    reader = story.reader(AGENT)
    answer, _ = read_history(reader, reader.requester(GROUP), {"sessionKey": "main"})
    stored = {
        "id": message_id,
        "role": "user",
        "content": "hello",
        "timestamp": answer["messages"][0]["timestamp"],
        "provenance": {"kind": "external_user"},
        "own": [1],
    }
    assert answer == {
        "sessionKey": "main",
        "messages": [stored],
        "truncated": False,
        "droppedMessages": 0,
        "contentTruncated": False,
        "contentRedacted": False,
        "bytes": len(msgspec.json.encode([stored])),
        "position": story.log.head(),
    }


@pytest.mark.clause("HIST-4", "HIST-5")
def test_secrets_are_hidden_from_all_but_the_session_itself_and_the_operator(story: Story) -> None:
    story.say(GROUP, SAID)
    arguments = msgspec.json.encode({"command": f"login --token {'k' * 40}"}).decode()
    story.say(GROUP, (ToolCallBlock(id="1", name="sh", arguments=arguments),), role="assistant")
    strange = read(story, GROUP)
    assert "hunter2hunter2hunter2" not in json.dumps(strange)
    assert "k" * 40 not in json.dumps(strange)
    assert strange["contentRedacted"] is True
    for requester in (GROUP, None):
        own = read(story, GROUP, requester)
        assert own["contentRedacted"] is False
        assert own["messages"][0]["content"] == SAID


@pytest.mark.clause("HIST-4")
def test_long_texts_are_cut_and_pictures_left_out_for_every_tool_call(story: Story) -> None:
    story.say(GROUP, (TextBlock(text="x" * 5000), ImageBlock(data="QUJD", mime_type="image/png")))
    for requester in (MAIN, GROUP, None):
        answer = read(story, GROUP, requester)
        text, image = answer["messages"][0]["content"]
        assert text["text"].startswith("x" * 4000)
        assert len(text["text"]) < 4100
        assert "data" not in image
        assert (answer["truncated"], answer["contentTruncated"]) == (True, True)
        assert answer["bytes"] == len(msgspec.json.encode(answer["messages"]))


@pytest.mark.clause("HIST-4")
def test_the_oldest_go_first_when_it_is_too_much_and_before_leads_on(story: Story) -> None:
    for number in range(60):
        story.say(MAIN, f"{number:02}" * 1900)
    seen: list[str] = []
    arguments: dict[str, Any] = {}
    while True:
        answer = read(story, "main", **arguments)
        assert answer["bytes"] <= 80 * 1024
        seen[:0] = [text[:2] for text in texts(answer)]
        if "before" not in answer:
            break
        assert answer["droppedMessages"] > 0
        assert answer["truncated"] is True
        arguments = {"before": answer["before"]}
    assert seen == [f"{number:02}" for number in range(60)]


@pytest.mark.clause("HIST-4")
def test_before_pages_back_over_a_limit_too(story: Story) -> None:
    ids = [story.say(MAIN, str(number)) for number in range(5)]
    first = read(story, "main", limit=2)
    assert (texts(first), first["before"], first["truncated"]) == (["3", "4"], ids[3], False)
    second = read(story, "main", limit=3, before=first["before"])
    assert texts(second) == ["0", "1", "2"]
    assert "before" not in second


@pytest.mark.clause("HIST-4")
def test_a_last_message_that_is_too_large_alone_is_stood_for(story: Story) -> None:
    story.say(MAIN, "small")
    large = story.say(MAIN, tuple(TextBlock(text="x" * 3900) for _ in range(40)))
    answer = read(story, "main")
    assert answer["bytes"] <= 80 * 1024
    assert answer["truncated"] is True
    assert [message["id"] for message in answer["messages"]] == [large]
    assert texts(read(story, "main", before=answer["before"])) == ["small"]


@pytest.mark.clause("HIST-1", "LIST-8")
def test_as_of_shows_what_had_been_said_by_then(story: Story) -> None:
    story.say(MAIN, "a")
    position = story.log.head()
    story.put(f"session:{MAIN}", SessionReset(session_id="new", previous_session_id="s-agent-main-main"))
    story.say(MAIN, "b", session_id="new")
    assert texts(read(story, "main")) == ["b"]
    then = read(story, "main", asOf=position)
    assert (texts(then), then["position"]) == (["a"], position)


@pytest.mark.clause("KEY-5")
def test_an_earlier_generation_is_read_by_its_id(story: Story) -> None:
    story.say(MAIN, "old")
    story.put(f"session:{MAIN}", SessionReset(session_id="new", previous_session_id="s-agent-main-main"))
    answer = read(story, "s-agent-main-main")
    assert (texts(answer), answer["sessionKey"]) == (["old"], "main")


@pytest.mark.clause("KEY-2", "KEY-5")
@pytest.mark.parametrize(
    "name", ["main", " MAIN\n", "agent:main:main", "AGENT:Main:MAIN", "s-agent-main-main"]
)
def test_one_session_answers_to_all_its_names(story: Story, name: str) -> None:
    story.say(MAIN, "hello")
    answer = read(story, name)
    assert (texts(answer), answer["sessionKey"]) == (["hello"], "main")


@pytest.mark.clause("HIST-6", "X2")
def test_absent_and_invisible_answer_with_the_same_bytes(story: Story) -> None:
    uuid = "11111111-2222-4333-8444-555555555555"
    other = "99999999-2222-4333-8444-555555555555"
    story.open("agent:main:hidden", session_id=uuid)
    for given in ("agent:main:hidden", "agent:main:absent", uuid, other, "global", "unknown", "nobody"):
        assert refusal(story, given, GROUP, {}) == {
            "status": "error",
            "code": "not_visible",
            "error": f"session not visible: {given}",
        }


@pytest.mark.clause("HIST-6")
def test_another_agents_key_is_forbidden_naming_the_settings_whether_it_exists_or_not(story: Story) -> None:
    absent = refusal(story, "agent:ops:main", MAIN, {})
    story.open(OPS, session_id="s-ops")
    present = refusal(story, "agent:ops:main", MAIN, {})
    assert absent == present
    assert (present["status"], present["code"]) == ("forbidden", "forbidden")
    assert "tools.sessions.visibility" in present["error"]
    assert "tools.agentToAgent.enabled" in present["error"]
    assert refusal(story, "s-ops", MAIN, {})["code"] == "not_visible"


@pytest.mark.clause("HIST-6", "VIS-2")
def test_a_child_under_another_agent_is_read_by_whoever_spawned_it(story: Story) -> None:
    child = "agent:ops:subagent:6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
    story.open(child, spawned_by=CHILD)
    story.open(CHILD, spawned_by=MAIN)
    story.say(child, "found it")
    assert texts(read(story, child, MAIN, {})) == ["found it"]
    assert refusal(story, child, GROUP, {})["code"] == "forbidden"


@pytest.mark.clause("HIST-6", "X5")
def test_a_sandboxed_child_does_not_read_its_parent_by_id(story: Story) -> None:
    story.open(CHILD, spawned_by=MAIN, sandboxed=True)
    config = {"tools": {"sessions": {"visibility": "all"}}}
    assert refusal(story, "s-agent-main-main", CHILD, config)["code"] == "not_visible"


@pytest.mark.clause("HIST-7")
def test_an_archived_session_is_read_by_id_and_not_by_key(story: Story) -> None:
    story.say(GROUP, "kept")
    position = story.log.head()
    session_id = f"s-{GROUP.replace(':', '-')}"
    story.put(f"session:{GROUP}", SessionArchived(session_id=session_id, reason="deleted"))
    assert refusal(story, GROUP)["code"] == "not_visible"
    assert texts(read(story, session_id)) == ["kept"]
    assert refusal(story, session_id, GROUP.replace("-100", "-200"), {})["code"] == "not_visible"
    assert texts(read(story, GROUP, asOf=position)) == ["kept"]


@pytest.mark.clause("KEY-6", "HIST-6")
def test_what_is_no_key_is_said_to_be_none(story: Story) -> None:
    answer = refusal(story, "agent::main")
    assert answer["code"] == "invalid_key"
    assert answer["error"].startswith("sessionKey: ")
