"""What a tool call returns of a transcript is kept small, and says what it left out."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.disclosure.capping import cap, cap_message


def message(text: str, number: int = 0) -> dict[str, Any]:
    return {"id": f"m{number}", "role": "user", "content": text, "timestamp": number}


@pytest.mark.clause("HIST-4", "HIST-3")
def test_what_fits_is_returned_field_by_field() -> None:
    blocks = [
        {"type": "text", "text": "x" * 4_000},
        {"type": "toolCall", "arguments": {"a": [1, "b"]}},
        "odd",
    ]
    messages = [message("hi"), {**message("", 1), "content": blocks, "extra": {"y": None}}]
    capped = cap(messages)

    assert capped.messages == messages
    assert (capped.truncated, capped.dropped, capped.content_truncated) == (False, 0, False)
    assert capped.bytes == len(msgspec.json.encode(messages))


@pytest.mark.clause("HIST-4")
def test_no_messages_are_two_bytes() -> None:
    capped = cap([])
    assert (capped.messages, capped.bytes, capped.truncated) == ([], 2, False)


@pytest.mark.clause("HIST-4")
def test_long_texts_are_cut_at_a_count_of_characters_and_say_so() -> None:
    long = "😀" * (4_000 + 5)
    cut = "😀" * 4_000 + "\n… [5 characters cut]"
    blocks = [
        {"type": "text", "text": long},
        {"type": "thinking", "thinking": long},
        {
            "type": "toolCall",
            "id": "c",
            "name": "write",
            "arguments": {"body": long, "lines": ["short", long]},
        },
    ]

    in_string, was_cut = cap_message(message(long))
    in_blocks, were_cut = cap_message({**message(""), "content": blocks})

    assert (in_string["content"], was_cut, were_cut) == (cut, True, True)
    text, thinking, call = in_blocks["content"]
    assert (text["text"], thinking["thinking"]) == (cut, cut)
    assert call["arguments"] == {"body": cut, "lines": ["short", cut]}


@pytest.mark.clause("HIST-4")
def test_signatures_and_picture_bytes_are_left_out() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "s" * 9},
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
        {"type": "image", "source": {"type": "base64", "data": "aGVsbG8="}},
    ]
    capped = cap([{**message(""), "content": blocks}])

    assert capped.content_truncated
    assert capped.messages[0]["content"] == [
        {"type": "thinking", "thinking": "hm"},
        {"type": "image", "mimeType": "image/png", "omitted": True, "bytes": 5},
        {"type": "image", "source": {"type": "base64"}, "omitted": True, "bytes": 5},
    ]
    assert blocks[0]["thinkingSignature"] == "s" * 9


@pytest.mark.clause("HIST-4")
def test_the_oldest_go_first_until_the_rest_fits() -> None:
    messages = [message("é" * 2_000, number) for number in range(40)]
    capped = cap(messages)

    assert capped.messages == messages[-len(capped.messages) :]
    assert capped.dropped == 40 - len(capped.messages)
    assert (capped.truncated, capped.content_truncated) == (True, False)
    assert capped.bytes == len(msgspec.json.encode(capped.messages)) <= 81_920
    one_more = messages[-len(capped.messages) - 1 :]
    assert len(msgspec.json.encode(one_more)) > 81_920


@pytest.mark.clause("HIST-4")
def test_exactly_the_limit_fits() -> None:
    messages = [message("a", number) for number in range(3)]
    size = len(msgspec.json.encode(messages))

    assert cap(messages, max_bytes=size).dropped == 0
    assert cap(messages, max_bytes=size - 1).dropped == 1


@pytest.mark.clause("HIST-4")
def test_a_last_message_that_is_too_large_alone_has_a_placeholder() -> None:
    huge = {**message("", 7), "content": [{"type": "text", "text": "x" * 3_000}] * 40}
    capped = cap([message("before"), huge])

    (placeholder,) = capped.messages
    assert (placeholder["id"], placeholder["role"], placeholder["timestamp"]) == ("m7", "user", 7)
    assert "too large" in placeholder["content"]
    assert (capped.truncated, capped.dropped, capped.content_truncated) == (True, 1, True)
    assert capped.bytes == len(msgspec.json.encode(capped.messages)) <= 81_920


@pytest.mark.clause("HIST-4")
def test_a_message_too_large_before_the_last_is_dropped_with_all_older_ones() -> None:
    huge = {**message("", 1), "content": [{"type": "text", "text": "x" * 3_000}] * 40}
    capped = cap([message("a", 0), huge, message("b", 2)])

    assert [each["id"] for each in capped.messages] == ["m2"]
    assert capped.dropped == 2


@pytest.mark.clause("HIST-4")
def test_what_is_nested_too_deep_to_be_written_has_a_placeholder() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    capped = cap([{**message("a"), "content": [{"type": "toolCall", "arguments": {"a": deep}}]}])
    while isinstance(deep, list):  # let it go level by level
        (deep,) = deep

    assert "too deep" in capped.messages[0]["content"]
    assert capped.truncated


@given(st.lists(st.text(max_size=60), max_size=8), st.integers(200, 500), st.integers(1, 40))
@pytest.mark.clause("HIST-4")
def test_the_result_always_fits_and_accounts_for_every_message(
    texts: list[str], max_bytes: int, max_characters: int
) -> None:
    messages = [message(text, number) for number, text in enumerate(texts)]
    capped = cap(messages, max_bytes=max_bytes, max_characters=max_characters)

    assert capped.bytes == len(msgspec.json.encode(capped.messages)) <= max_bytes
    assert len(capped.messages) + capped.dropped == len(messages)
    assert [each["id"] for each in capped.messages] == [each["id"] for each in messages[capped.dropped :]]
    assert bool(capped.messages) is bool(messages)
    assert capped.truncated is (capped.messages != messages)


@given(st.text(max_size=60), st.integers(0, 40))
@pytest.mark.clause("HIST-4")
def test_cutting_again_changes_nothing(text: str, max_characters: int) -> None:
    once, _ = cap_message(message(text), max_characters=max_characters + 10)
    assert cap_message(once, max_characters=max_characters + 10) == (once, False)
