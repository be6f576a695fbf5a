"""How sessions are called: sub-agents by labels that mean one session, and by such a name alone can each be found again."""

from collections.abc import Sequence

import pytest

from intersession_actors.hindsight.debugger.named import session_named
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import SessionArchived, SessionPatched
from intersession_projections.views.sessions.names import SessionNames
from support.story import MAIN, Story

KEYS = [f"agent:main:subagent:{number}a4d280b-fc53-4c01-9c8c-4d77a60bfa97" for number in range(4)]
FIRST, SECOND, THIRD, OTHER = KEYS
FOREIGN = "agent:ops:subagent:6a4d280b-fc53-4c01-9c8c-4d77a60bfa98"


def label(story: Story, key: str, text: str | None) -> None:
    story.put(
        f"session:{key}",
        SessionPatched(values={} if text is None else {"label": text}, cleared=() if text else ("label",)),
    )


def archive(story: Story, key: str) -> None:
    story.put(f"session:{key}", SessionArchived(session_id=f"s-{key.replace(':', '-')}", reason="deleted"))


@pytest.fixture
def children(story: Story) -> Story:
    for key in (MAIN, *KEYS, FOREIGN):
        story.open(key)
    return story


def called(story: Story) -> list[str]:
    named = SessionNames(story.log).of([MAIN, *KEYS, FOREIGN])
    return [named[key] for key in (*KEYS, FOREIGN)]


def found_again(story: Story, *, keys: Sequence[str] = (MAIN, *KEYS, FOREIGN)) -> None:
    """Each name that is shown means the session that it is shown for."""
    reader = story.reader()
    for key, name in SessionNames(story.log).of(keys).items():
        assert session_named(reader, name, field="session") == key


@pytest.mark.clause("KEY-6")
def test_a_label_that_one_session_of_an_agent_has_is_its_name(children: Story) -> None:
    label(children, FIRST, "kid")
    label(children, FOREIGN, "kid")
    assert called(children)[:2] == ["main/kid", "main/subagent:1a4d280b"]
    assert called(children)[-1] == "ops/kid"
    found_again(children)
    label(children, SECOND, "kid")
    assert called(children)[:2] == ["main/subagent:0a4d280b", "main/subagent:1a4d280b"]
    found_again(children)
    label(children, FIRST, None)
    assert called(children)[:2] == ["main/subagent:0a4d280b", "main/kid"]
    found_again(children)


@pytest.mark.clause("KEY-6")
def test_an_archived_session_keeps_its_name_until_another_one_takes_it(children: Story) -> None:
    label(children, FIRST, "kid")
    archive(children, FIRST)
    assert called(children)[0] == "main/kid"
    found_again(children)
    label(children, SECOND, "kid")
    assert called(children)[:2] == ["main/subagent:0a4d280b", "main/kid"]
    found_again(children)
    archive(children, SECOND)
    assert called(children)[:2] == ["main/subagent:0a4d280b", "main/subagent:1a4d280b"]
    found_again(children)
    with pytest.raises(ToolRefused, match="several sessions have the label"):
        session_named(children.reader(), "main/kid", field="session")


@pytest.mark.clause("KEY-6")
@pytest.mark.parametrize(
    "text",
    [
        "subagent:1a4d280b",
        "kid@reply",
        "\u202edik",
        " kid",
        "k\u200bid",
        "x" * 65,
        "telegram",
        "side",
    ],
)
def test_a_label_that_could_be_taken_for_something_else_is_no_name(children: Story, text: str) -> None:
    children.open("agent:main:side")
    children.open("agent:main:telegram:direct:7")
    label(children, FIRST, text)
    plain = {"telegram": "main/telegram"}
    assert called(children)[0] == plain.get(text, "main/subagent:0a4d280b")
    found_again(children)


@pytest.mark.clause("VIS-2")
def test_whom_a_session_does_not_see_changes_no_name(children: Story) -> None:
    label(children, FIRST, "kid")
    before = SessionNames(children.log, {FIRST, THIRD}.__contains__).of(KEYS)
    label(children, SECOND, "kid")
    label(children, OTHER, "other")
    after = SessionNames(children.log, {FIRST, THIRD}.__contains__).of(KEYS)
    assert before == after
    assert after[FIRST] == "main/kid"
    assert after[OTHER] == "main/subagent:3a4d280b"
    label(children, THIRD, "kid")
    assert SessionNames(children.log, {FIRST, THIRD}.__contains__).one(FIRST) == "main/subagent:0a4d280b"


@pytest.mark.clause("PLACE-5")
def test_what_is_no_session_is_called_as_it_is(story: Story) -> None:
    assert SessionNames(story.log).of(["operator", "telegram:42", "agent:", ""]) == {
        "operator": "operator",
        "telegram:42": "telegram:42",
        "agent:": "agent:",
        "": "",
    }
