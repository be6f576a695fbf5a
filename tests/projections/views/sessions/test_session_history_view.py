"""History as the log has it: by generation, backwards, at any position."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intersession_events.facts import (
    ImageBlock,
    LineImported,
    Message,
    MessageRecorded,
    OtherBlock,
    SessionOpened,
    SessionReset,
    TextBlock,
    ThinkingBlock,
    message_in,
)
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.sessions.history import History, UnknownMessage
from support.busy_session import STEPS, Busy
from support.plain_log import PlainLog
from support.story import MAIN, PERSON, Story

STREAM = f"session:{MAIN}"
ID = "s-agent-main-main"


def texts(
    story: Story, session_id: str = ID, *, limit: int = 200, include_tools: bool = False, **given: object
) -> list[str]:
    page = History(story.log).messages(MAIN, session_id, limit=limit, include_tools=include_tools, **given)  # type: ignore[arg-type]
    return [message["content"] for message in page.messages]


@pytest.mark.clause("HIST-2")
def test_tool_results_are_left_out_before_the_limit_counts(story: Story) -> None:
    story.open()
    for text in ("a", "b", "c"):
        story.say(MAIN, text)
        story.say(MAIN, f"{text} result", role="toolResult", tool_call_id="1", tool_name="t")
    assert texts(story, limit=2) == ["b", "c"]
    assert texts(story, limit=2, include_tools=True) == ["c", "c result"]


@pytest.mark.clause("HIST-4")
def test_pages_back_meet_without_gap_or_repeat(story: Story) -> None:
    story.open()
    for number in range(450):
        story.say(MAIN, str(number))
    history = History(story.log)
    seen: list[str] = []
    before: str | None = None
    while True:
        page = history.messages(MAIN, ID, before=before, limit=100, include_tools=False)
        seen[:0] = [message["content"] for message in page.messages]
        before = page.before
        if before is None:
            break
    assert seen == [str(number) for number in range(450)]


@pytest.mark.clause("HIST-4")
def test_a_page_that_begins_with_the_first_message_names_none_before(story: Story) -> None:
    story.open()
    first = story.say(MAIN, "a")
    history = History(story.log)
    assert history.messages(MAIN, ID, limit=1, include_tools=False).before is None
    assert history.messages(MAIN, ID, before=first, limit=1, include_tools=False).messages == []


@pytest.mark.clause("HIST-1")
def test_a_message_that_is_not_there_is_an_error_that_names_the_field(story: Story) -> None:
    story.open()
    story.say(MAIN, "a")
    with pytest.raises(UnknownMessage, match=r"^before: "):
        texts(story, before="nobody")


@pytest.mark.clause("HIST-1", "LIST-8")
def test_history_at_a_position_is_what_had_been_said_by_then(story: Story) -> None:
    story.open()
    story.say(MAIN, "a")
    position = story.log.head()
    story.say(MAIN, "b", time=1)
    assert texts(story, as_of=position) == ["a"]
    assert texts(story, as_of=position + 1) == ["a", "b"]
    assert texts(story, as_of=1) == []


@pytest.mark.clause("KEY-5", "GATE-2")
def test_each_generation_has_its_own_messages(story: Story) -> None:
    story.open()
    story.say(MAIN, "old")
    story.put(STREAM, SessionReset(session_id="new", previous_session_id=ID))
    story.say(MAIN, "new", session_id="new")
    story.say(MAIN, "a run that outlived the reset", session_id=ID)
    story.say(MAIN, "newer", session_id="new")
    assert texts(story) == ["old", "a run that outlived the reset"]
    assert texts(story, "new") == ["new", "newer"]
    assert texts(story, "nobody") == []


@pytest.mark.clause("IMP-3")
def test_the_stamp_of_an_imported_message_is_not_shown_and_another_text_is_not_touched(story: Story) -> None:
    stamped = "[Sat 2026-11-21 04:05 UTC] hello"
    story.open(opened_by="import")
    story.say(MAIN, stamped, source="{}")
    story.say(MAIN, (ImageBlock(data="AA=="), TextBlock(text=stamped), TextBlock(text=stamped)), source="{}")
    story.say(MAIN, stamped, role="assistant", source="{}")
    story.say(MAIN, stamped)
    shown = texts(story)
    assert shown[0] == "hello"
    assert [block.get("text") for block in shown[1]] == [None, "hello", stamped]  # type: ignore[attr-defined]
    assert shown[2:] == [stamped, stamped]
    raw = History(story.log).operator_messages(MAIN, ID)
    assert raw[0].content == stamped
    assert [message.content for message in History(story.log).operator_messages(MAIN, ID, limit=1)] == [
        stamped
    ]


@pytest.mark.clause("HIST-3")
def test_a_message_comes_back_field_by_field_unknown_ones_too(story: Story) -> None:
    story.open()
    story.put(STREAM, LineImported(session_id=ID, kind="compaction", source="{}"))
    message = Message(
        id="m",
        role="assistant",
        content=(
            TextBlock(text="a\0b", extra='{"cache":1}'),
            ThinkingBlock(thinking="hm", thinking_signature="sig"),
            OtherBlock(json='{"type":"video","url":"x"}'),
        ),
        timestamp=5,
        provenance=PERSON,
        stop_reason="stop",
        extra='{"api":"fake","cost":{"total":0.5}}',
    )
    story.put(STREAM, MessageRecorded(session_id=ID, message=message))
    page = History(story.log).messages(MAIN, ID, limit=5, include_tools=True)
    assert page.messages == [
        {
            "id": "m",
            "role": "assistant",
            "content": [
                {"type": "text", "text": "a\0b", "cache": 1},
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
                {"type": "video", "url": "x"},
            ],
            "timestamp": 5,
            "provenance": {"kind": "external_user"},
            "stopReason": "stop",
            "api": "fake",
            "cost": {"total": 0.5},
        }
    ]


@pytest.mark.clause("HIST-2")
def test_the_last_messages_of_a_long_session_are_read_without_the_rest(story: Story) -> None:
    story.open()
    drafts = tuple(
        Draft(
            event=MessageRecorded(
                session_id=ID, message=Message(id=f"n{number}", role="user", content="x", timestamp=number)
            ),
            id=f"long{number}",
            time=number,
        )
        for number in range(3000)
    )
    story.log.append_now((StreamAppend(stream=STREAM, expected=ANY_VERSION, drafts=drafts),))
    read: list[int] = []

    class Counting:
        def __init__(self, log: object) -> None:
            self._log = log

        def __getattr__(self, name: str) -> object:
            return getattr(self._log, name)

        def stream(self, *names: Any, **given: Any) -> object:
            found = story.log.stream(*names, **given)
            read.append(len(found))
            return found

    page = History(Counting(story.log)).messages(MAIN, ID, limit=50, include_tools=False)  # type: ignore[arg-type]
    assert [message["id"] for message in page.messages] == [f"n{number}" for number in range(2950, 3000)]
    assert sum(read) <= 200


@pytest.mark.clause("HIST-3", "HIST-4")
@settings(max_examples=60)
@given(steps=st.lists(st.sampled_from(STEPS), max_size=30), data=st.data())
def test_the_page_before_any_message_is_what_stands_before_it(
    steps: list[Callable[[Busy], None]], data: st.DataObject
) -> None:
    """Before: reading back to a message read all behind it. Busy sessions take messages in another order than they come."""
    busy = Busy()
    for step in steps:
        step(busy)
    log = PlainLog(inline_views())
    log.put(STREAM, SessionOpened(key=MAIN, session_id="s", agent_id="main", opened_by="person"))
    for event in busy.events:
        log.put(STREAM, event)
    has_ended = data.draw(st.booleans(), "the generation has ended")
    if has_ended:
        log.put(STREAM, SessionReset(session_id="s2", previous_session_id="s"))
        for event in busy.events[-3:]:
            if message_in(event) is None:
                log.put(STREAM, event)
    as_of = data.draw(st.integers(1, len(log.events)), "as of")
    history = History(log)

    def ids(before: str | None, limit: int = 1000) -> list[str]:
        page = history.messages(MAIN, "s", as_of=as_of, before=before, limit=limit, include_tools=True)
        return [message["id"] for message in page.messages]

    whole = ids(None)
    for place, name in enumerate(whole):
        assert ids(name) == whole[:place]
        assert ids(name, 2) == whole[:place][-2:]
    said = {message.id for event in busy.events if (message := message_in(event)) is not None}
    unsaid = said - {*whole}
    for name in (*sorted(unsaid), "nobody said this"):
        with pytest.raises(UnknownMessage):
            ids(name)
