"""Messages come back as they were, and time is the source's (IMP-1, IMP-3, HIST-3)."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession import SessionSystem, echo
from intersession_events.facts import (
    LineImported,
    Message,
    MessageRecorded,
    OtherBlock,
    ToolCallBlock,
    Usage,
    raw_message,
    registry,
    text_of,
)
from intersession_events.transcripts.openclaw.reading.message import same, to_message
from intersession_events.transcripts.openclaw.reading.stamp import strip_stamp
from support.openclaw.samples import (
    DESK,
    HOUSEHOLD,
    all_events,
    all_states,
    drafts_of,
    events,
    header,
    message,
    planned,
    planned_anew,
    said,
    session_of,
    write_state,
)


def converted(body: dict[str, Any]) -> Message:
    found = to_message(msgspec.json.encode(body), entry_id="e1", time=7)
    assert found is not None
    return found


@pytest.mark.clause("HIST-3", "IMP-3")
@pytest.mark.parametrize("state", all_states())
def test_every_message_equals_the_object_in_its_line(state: Path) -> None:
    recorded = all_events(planned(state), MessageRecorded)

    assert recorded
    for event in recorded:
        line = msgspec.json.decode(event.source or "")
        assert same(raw_message(event.message), {**line["message"], "id": line.get("id", event.message.id)})


@pytest.mark.clause("IMP-3")
@pytest.mark.parametrize("state", all_states())
def test_every_event_reads_back_from_the_bytes_that_are_stored(state: Path) -> None:
    for item in planned(state).planned:
        event = item.draft.event
        assert registry.decode(registry.topic_of(event), registry.encode(event)) == event


@pytest.mark.clause("IMP-3")
@pytest.mark.parametrize("state", all_states())
def test_events_are_in_the_order_of_time_and_each_stream_in_that_of_its_files(state: Path) -> None:
    found = planned(state)

    times = [item.draft.time for item in found.planned]
    assert times == sorted(times)
    places = [item.place for item in found.planned]
    assert places == sorted(places)
    assert len({item.draft.id for item in found.planned}) == len(found.planned)


@pytest.mark.clause("IMP-3")
def test_the_time_of_an_event_is_that_of_its_line() -> None:
    for draft in session_of(planned(HOUSEHOLD), "agent:desk:notes"):
        if isinstance(draft.event, MessageRecorded):
            assert draft.time == draft.event.message.timestamp


@pytest.mark.clause("IMP-3")
def test_the_stamp_stays_in_the_log_and_a_view_can_strip_it() -> None:
    recorded = events(session_of(planned(HOUSEHOLD), DESK), MessageRecorded)

    text = text_of(recorded[0].message)
    assert text == "[Mon 2026-03-02 09:00 UTC] What is the plan?"
    assert strip_stamp(text) == "What is the plan?"


@pytest.mark.parametrize(
    "text",
    ["[Sat] hi", "[x] y", "[Mon 2026-03-02 09:00 UTC]no blank", "", "hello [Sat 2026-11-21 04:05 UTC] x"],
)
def test_what_is_no_stamp_is_left_alone(text: str) -> None:
    assert strip_stamp(text) == text


def test_floats_of_usage_and_cost_come_back_and_are_counted_in_micro_units() -> None:
    usage = {
        "input": 1,
        "output": 2,
        "totalTokens": 3,
        "cost": {"input": 0.1, "total": 0.30000000000000004},
        "new": 1.0,
    }

    found = converted({"role": "assistant", "content": [], "timestamp": 5, "usage": usage})

    assert found.usage == Usage(input=1, output=2, total_tokens=3, cost_micros=300_000)
    assert raw_message(found)["usage"] == usage


def test_the_source_text_of_unknown_fields_is_kept() -> None:
    source = b'{"role":"user","content":"x","timestamp":5,"odd": 1.50,"big":123456789012345678901234567890}'

    found = to_message(source, entry_id="e1", time=7)

    assert found is not None
    assert found.extra == '{"odd":1.50,"big":123456789012345678901234567890}'


def test_tool_arguments_are_kept_as_their_source_text() -> None:
    source = (
        b'{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"n","arguments":{"x": 1e2}}]}'
    )

    found = to_message(source, entry_id="e1", time=7)

    assert found is not None
    assert found.content == (ToolCallBlock(id="c", name="n", arguments='{"x": 1e2}'),)
    assert found.timestamp == 7


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text"},
        {"type": "text", "text": 5},
        {"type": "text", "text": "x", "textSignature": "s"},
        {"type": "thinking", "thinking": "x", "thinkingSignature": None},
        {"type": "toolCall", "id": "c", "name": "n"},
        {"type": "toolCall", "id": "c", "name": "n", "arguments": "not an object"},
        {"type": "toolCall", "id": "c", "name": "n", "arguments": {}, "partialJson": "{"},
        {"type": "image", "data": "aGk=", "mimeType": 5},
        {"type": "hologram", "text": "x"},
        {"type": "other", "json": "{}"},
        {},
    ],
)
def test_blocks_of_any_shape_come_back(block: dict[str, Any]) -> None:
    found = converted({"role": "assistant", "content": [block], "timestamp": 5})

    assert same(raw_message(found)["content"], [block])


@pytest.mark.parametrize(
    "fields",
    [
        {"timestamp": "2026-03-02T09:00:00Z"},
        {"timestamp": -5},
        {"timestamp": 1.5},
        {"timestamp": 2**60},
        {"provenance": {"kind": "inter_session", "sourceTool": "telepathy"}},
        {"provenance": {"kind": "hearsay"}},
        {"provenance": None},
        {"provenance": {"kind": "inter_session", "exchangeId": "x", "turn": 2**60}},
        {"isError": "no"},
        {"usage": None},
        {"usage": {"input": -1, "output": 2**60, "cost": {"total": float(2**70)}}},
        {"model": 5},
        {"extra": "{}"},
        {"run_id": "snake"},
    ],
)
def test_fields_of_any_type_come_back(fields: dict[str, Any]) -> None:
    body = {"role": "user", "content": "x", "timestamp": 5, **fields}

    found = converted(body)

    assert same(raw_message(found), {**body, "id": "e1"})
    registry.encode(MessageRecorded(session_id="s", message=found))


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_NAMES = st.sampled_from(
    [
        "content",
        "provenance",
        "usage",
        "model",
        "stopReason",
        "toolCallId",
        "isError",
        "extra",
        "runId",
        "details",
        "ü",
    ]
)


@given(
    st.dictionaries(_NAMES, _JSON, max_size=6), st.sampled_from(["user", "assistant", "toolResult", "system"])
)
def test_whatever_a_message_holds_it_comes_back_or_is_none(fields: dict[str, Any], role: str) -> None:
    body = {"role": role, "content": "x", "timestamp": 5, **fields}
    try:
        source = msgspec.json.encode(body)
    except UnicodeEncodeError:
        return

    found = to_message(source, entry_id="e1", time=7)

    if found is not None:
        assert same(raw_message(found), {**msgspec.json.decode(source), "id": "e1"})


def test_lines_of_version_1_get_ids_that_are_always_the_same() -> None:
    first, second = (planned_anew(HOUSEHOLD) for _ in range(2))

    recorded = events(session_of(first, "agent:home:legacy"), MessageRecorded)
    assert [event.message.id.rpartition(".")[2] for event in recorded] == ["2", "3"]
    assert recorded == events(session_of(second, "agent:home:legacy"), MessageRecorded)


def test_a_hook_message_of_version_2_is_a_line_and_no_message() -> None:
    drafts = session_of(planned(HOUSEHOLD), "agent:desk:notes")

    assert [event.kind for event in events(drafts, LineImported)] == ["session", "message:hookMessage"]
    assert [event.message.role for event in events(drafts, MessageRecorded)] == ["user", "assistant"]


def test_the_parent_of_an_entry_is_kept_and_is_the_cause_of_an_answer() -> None:
    drafts = session_of(planned(HOUSEHOLD), "agent:desk:discord:channel:42")

    asked, answered = (draft for draft in drafts if isinstance(draft.event, MessageRecorded))
    assert answered.causation == asked.id
    assert answered.correlation == asked.correlation == asked.id
    [line] = [event for event in events(drafts, LineImported) if event.kind == "session"]
    assert line.parent_id is None
    assert '"parentId":"12000001"' in str(answered.event)


def test_a_line_that_goes_back_in_time_keeps_its_place_in_the_file(tmp_path: Path) -> None:
    lines = [
        header(),
        message("a1", said("one"), 9),
        message("a2", said("two"), 3),
        message("a3", said("three"), 8),
    ]
    found = planned(write_state(tmp_path, lines))

    drafts = [
        draft
        for draft in drafts_of(found, "session:agent:main:archived-s-1")
        if isinstance(draft.event, MessageRecorded)
    ]
    assert [draft.event.message.id for draft in drafts if isinstance(draft.event, MessageRecorded)] == [
        "a1",
        "a2",
        "a3",
    ]
    assert [draft.time for draft in drafts] == [1772442009000] * 3
    assert any("2 lines have an earlier time" in note.what for note in found.report.notes)


def test_a_block_of_no_known_kind_is_kept_as_its_source_text() -> None:
    [event] = [
        event
        for event in all_events(planned(HOUSEHOLD), MessageRecorded)
        if any(isinstance(block, OtherBlock) for block in event.message.content)
    ]

    assert event.message.content[1] == OtherBlock(json='{"type":"hologram","data":1.0}')
    assert event.message.extra is not None
    assert '"novel":{"deep":[1,2.5,1000.0]}' in event.message.extra


@pytest.mark.clause("IMP-3")
def test_a_line_is_kept_letter_for_letter_and_a_view_alone_strips_the_stamp(tmp_path: Path) -> None:
    spoken = '{"type" : "message","id":"m1","x":  {"b":1.0,"a":"\\u00e9/\\/"},"timestamp":"2026-03-02T09:00:01.000Z","message":{"role":"user","content":"[Mon 2026-03-02 09:00 UTC] hi","timestamp":1772442001000}}'
    other = '{"id": "c1",  "type":"compaction","timestamp":"2026-03-02T09:00:02.000Z","summary":"caf\\u00e9","n":1e3}'
    state = write_state(
        tmp_path,
        [header(), spoken.encode(), other.encode()],
        entries={"agent:main:main": {"sessionId": "s-1"}},
    )

    found = planned_anew(state)

    (message_of,) = all_events(found, MessageRecorded)
    assert message_of.source == spoken
    assert other in [line.source for line in all_events(found, LineImported)]
    with SessionSystem(tmp_path / "log.db", agents={"main": echo()}) as system:
        system.import_openclaw(state)
        (shown,) = system.tools().call("sessions_history", {"sessionKey": "main"})["messages"]
        (recorded,) = [one.event for one in system.log.all() if isinstance(one.event, MessageRecorded)]
    assert shown["content"] == "hi"
    assert recorded.source == spoken
    assert text_of(recorded.message) == "[Mon 2026-03-02 09:00 UTC] hi"


@pytest.mark.clause("IMP-3")
def test_lines_of_one_time_are_ordered_by_their_file_and_then_their_line(tmp_path: Path) -> None:
    """However the files were written, and whatever the ids of their lines."""
    for agent, name in (("zoe", "a.jsonl"), ("amy", "b.jsonl"), ("amy", "a.jsonl")):
        lines = [
            header(f"{agent}-{name[0]}"),
            *(message(f"{9 - n}", said(f"{agent}/{name} {n}"), 1) for n in range(3)),
        ]
        write_state(tmp_path, lines, agent=agent, name=name)

    found = planned_anew(tmp_path)

    texts = [
        text_of(item.draft.event.message)
        for item in found.planned
        if isinstance(item.draft.event, MessageRecorded)
    ]
    assert texts == [
        f"{where} {n}" for where in ("amy/a.jsonl", "amy/b.jsonl", "zoe/a.jsonl") for n in range(3)
    ]


@pytest.mark.clause("IMP-3", "LIST-8")
def test_as_of_a_time_means_the_time_of_the_source(tmp_path: Path) -> None:
    """Two files whose lines interleave, imported long after."""
    entries = {"agent:main:main": {"sessionId": "s-1"}, "agent:main:notes": {"sessionId": "s-2"}}
    write_state(
        tmp_path,
        [header("s-1"), message("a", said("one"), 1), message("c", said("three"), 3)],
        entries=entries,
    )
    write_state(
        tmp_path,
        [header("s-2"), message("b", said("two"), 2), message("d", said("four"), 4)],
        name="s-2.jsonl",
    )
    with SessionSystem(tmp_path / "log.db", agents={"main": echo()}) as system:
        system.import_openclaw(tmp_path)

        def heard(second: int) -> list[str]:
            at = f"2026-03-02T09:00:{second:02d}Z"
            listed = system.tools().call("sessions_list", {"asOf": at})["sessions"]
            histories = [
                system.tools().call("sessions_history", {"sessionKey": row["sessionId"], "asOf": at})[
                    "messages"
                ]
                for row in listed
            ]
            return sorted(message["content"] for history in histories for message in history)

        assert [heard(second) for second in (1, 2, 3, 4, 59)] == [
            ["one"],
            ["one", "two"],
            ["one", "three", "two"],
            ["four", "one", "three", "two"],
            ["four", "one", "three", "two"],
        ]
