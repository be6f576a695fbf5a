"""From what was typed to the session: what sending and looking up by label see."""

from collections.abc import Iterator
from typing import Any

import pytest

from intersession_actors.calls.service.resolve import (
    Resolved,
    TargetRefused,
    resolve_label,
    resolve_main,
    resolve_target,
)
from intersession_events.facts import SessionArchived, SessionReset
from support import hostile
from support.story import MAIN, Story

AGENTS = {"agents": {"list": [{"id": "main"}, {"id": "ops"}]}}
AGENT = {"tools": {"sessions": {"visibility": "agent"}}, **AGENTS}
ALL = {"tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}}, **AGENTS}
OPS = "agent:ops:main"
NAMED = "agent:main:work"


@pytest.fixture
def story(passing_url: str) -> Iterator[Story]:
    told = Story(passing_url)
    told.open(MAIN)
    yield told
    told.close()


def send(story: Story, text: str, config: dict[str, Any] = AGENT) -> Resolved:
    reader = story.reader(config)
    return resolve_target(reader, reader.requester(MAIN), text, "send")


def label(story: Story, text: str, agent_id: str | None = None, config: dict[str, Any] = AGENT) -> Resolved:
    reader = story.reader(config)
    return resolve_label(reader, reader.requester(MAIN), text, agent_id, "send")


def code(refused: pytest.ExceptionInfo[TargetRefused]) -> str:
    return refused.value.code


@pytest.mark.clause("SEND-2", "HIST-6")
def test_a_target_is_bound_to_the_generation_that_was_found(story: Story) -> None:
    story.open(NAMED, session_id="first")
    found = send(story, NAMED)
    assert (str(found.key), found.shown, found.session_id, found.generation_only) == (
        NAMED,
        NAMED,
        "first",
        False,
    )
    assert found.row is not None


@pytest.mark.clause("SEND-2", "KEY-9")
def test_sending_opens_the_main_session_of_a_configured_agent_and_nothing_else(story: Story) -> None:
    found = send(story, OPS, ALL)
    assert (str(found.key), found.session_id, found.row) == (OPS, None, None)
    for absent in ("agent:ghost:main", "agent:ops:work", NAMED):
        with pytest.raises(TargetRefused) as refused:
            send(story, absent, ALL)
        assert code(refused) == "not_visible"
    reader = story.reader(ALL)
    with pytest.raises(TargetRefused):
        resolve_target(reader, reader.requester(MAIN), OPS, "history")


@pytest.mark.clause("KEY-5")
def test_an_earlier_generation_is_no_target(story: Story) -> None:
    story.open(NAMED, session_id="first")
    story.put(f"session:{NAMED}", SessionReset(session_id="second", previous_session_id="first"))
    assert send(story, "second").session_id == "second"
    with pytest.raises(
        TargetRefused, match=r"^sessionKey: first is an earlier generation of agent:main:work"
    ) as refused:
        send(story, "first")
    assert code(refused) == "old_generation"


@pytest.mark.clause("HIST-7")
def test_an_archived_session_is_no_target_by_key_or_id(story: Story) -> None:
    story.open(NAMED, session_id="first")
    story.put(f"session:{NAMED}", SessionArchived(session_id="first", reason="expired"))
    for given in (NAMED, "first"):
        with pytest.raises(TargetRefused) as refused:
            send(story, given)
        assert code(refused) == "not_visible"


@pytest.mark.clause("SEND-1")
def test_a_label_finds_the_one_visible_session_that_has_it(story: Story) -> None:
    story.open(NAMED, label="Tests")
    story.open("agent:ops:work", label="Tests")
    assert str(label(story, "Tests").key) == NAMED
    assert str(label(story, "Tests", "ops", ALL).key) == "agent:ops:work"
    with pytest.raises(TargetRefused) as refused:
        label(story, "Tests", config=ALL)
    assert code(refused) == "ambiguous_label"
    assert NAMED in refused.value.error
    assert "agent:ops:work" in refused.value.error


@pytest.mark.clause("SEND-1", "HIST-6", "X5")
def test_the_label_of_an_invisible_session_answers_like_a_missing_one(story: Story) -> None:
    story.open("agent:main:hidden", label="there")
    for agent_id in (None, "main"):
        errors = []
        for text in ("there", "gone!"):
            with pytest.raises(TargetRefused) as refused:
                label(story, text, agent_id, AGENTS)
            errors.append((code(refused), refused.value.error.replace(text, "?")))
        assert errors[0] == errors[1] == ("not_visible", "session not visible: ?")


@pytest.mark.clause("SEND-1", "HIST-6")
def test_a_label_of_a_closed_agent_is_forbidden_whether_it_is_there_or_not(story: Story) -> None:
    story.open("agent:ops:work", label="there")
    for text in ("there", "gone"):
        with pytest.raises(TargetRefused, match=r"^agentId: .*tools\.agentToAgent\.enabled") as refused:
            label(story, text, "ops")
        assert code(refused) == "forbidden"


@pytest.mark.clause("SEND-1")
def test_an_agents_main_session_is_found_by_the_agents_id(story: Story) -> None:
    reader = story.reader(ALL)
    requester = reader.requester(MAIN)
    assert str(resolve_main(reader, requester, " OPS ", "send").key) == OPS
    for bad, expected in (
        ("a b", "invalid_request"),
        ("Worker\u212a", "invalid_request"),
        ("ops:work", "invalid_request"),
        ("ghost", "not_visible"),
    ):
        with pytest.raises(TargetRefused) as refused:
            resolve_main(reader, requester, bad, "send")
        assert code(refused) == expected


@pytest.mark.clause("KEY-4")
def test_with_the_global_scope_every_main_is_the_one_session(story: Story) -> None:
    reader = story.reader({"session": {"scope": "global"}, **AGENTS})
    requester = reader.requester(MAIN, "ops")
    for given in ("main", "agent:ops:main", "agent:main:main"):
        found = resolve_target(reader, requester, given, "send")
        assert (str(found.key), found.shown) == (MAIN, "main")
    assert str(resolve_main(reader, requester, "ops", "send").key) == MAIN


@pytest.mark.clause("KEY-6", "X5")
@pytest.mark.parametrize("row", hostile.rows("K", field="sessionKey"), ids=hostile.row_id)
def test_a_hostile_key_is_the_session_it_says_or_a_typed_refusal(story: Story, row: dict[str, Any]) -> None:
    expected, _, canonical = row["expect"].partition(":")
    given = hostile.given(row)
    if expected == "canonical":
        if canonical != MAIN:
            story.open(canonical)
        assert str(send(story, given).key) == canonical
        return
    with pytest.raises(TargetRefused) as refused:
        send(story, given)
    assert code(refused) == expected
    assert len(refused.value.error) < 2000


@pytest.mark.clause("VIS-6")
def test_the_operator_finds_everything(story: Story) -> None:
    story.open("agent:ops:work")
    reader = story.reader(AGENTS)
    found = resolve_target(reader, reader.requester(None), "agent:ops:work", "send")
    assert found.row is not None
