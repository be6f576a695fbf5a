"""Long texts go out in parts: no letter is lost, and a part ends where a reader pauses."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.outside.channels.caller import ChannelCaller
from intersession_actors.outside.channels.channels import Channel, DeliveryRefused
from intersession_actors.outside.channels.fitting import fitted
from intersession_actors.rules.errors import ToolRefused


def parts(text: str, **given: Any) -> list[str]:
    """Part a text as a channel takes it."""
    channel, begins, found = Channel(deliver=print, **given), 0, list[str]()
    while True:
        part = fitted(text, channel, begins)
        found.append(part.text)
        if part.sent is None:
            return found
        assert part.sent > begins
        begins = part.sent


def letters(*texts: str) -> str:
    return re.sub(r"\s", "", "".join(texts))


PIECES = st.sampled_from(["a", "bc ", "\n", "\n\n", "ü", "  ", "👩‍👩‍👧", "🇩🇪", "é", "x" * 9, "`", "&"])


@pytest.mark.clause("ANN-6")
@given(pieces=st.lists(PIECES, max_size=80), most=st.integers(min_value=1, max_value=40))
def test_no_letter_is_lost_and_no_part_is_too_long_or_blank(pieces: list[str], most: int) -> None:
    text = "".join(pieces)
    found = parts(text, max_chars=most)

    assert max(map(len, found)) <= most
    assert letters(*found) == letters(text)
    if text.strip():
        assert all(part.strip() for part in found)


@pytest.mark.clause("ANN-6")
@given(text=st.text(alphabet="a&<\n ", max_size=60), most=st.integers(min_value=5, max_value=30))
def test_a_part_is_short_enough_once_it_is_escaped(text: str, most: int) -> None:
    found = parts(text, max_chars=most, escape=lambda given: given.replace("&", "&amp;").replace("<", "&lt;"))

    assert max(map(len, found)) <= most
    assert letters(*found) == letters(text.replace("&", "&amp;").replace("<", "&lt;"))


@pytest.mark.clause("ANN-6")
@pytest.mark.parametrize(
    ("text", "most", "found"),
    [
        ("One two.\n\nThree four.\n\nFive.", 22, ["One two.\n\nThree four.", "Five."]),
        ("One two.\nThree four.\nFive.", 22, ["One two.\nThree four.", "Five."]),
        ("one two three four", 10, ["one two", "three four"]),
        ("x" * 25, 10, ["x" * 10, "x" * 10, "x" * 5]),
        ("aaaaaaaaa👩‍👩‍👧bb", 10, ["aaaaaaaaa", "👩‍👩‍👧bb"]),
        ("🇩🇪🇫🇷🇮🇹", 3, ["🇩🇪", "🇫🇷", "🇮🇹"]),
        ("aaaae\u0301", 5, ["aaaa", "e\u0301"]),
        ("see https://example.com/a/long/path now", 32, ["see https://example.com/a/long/", "path now"]),
        ("- one\n    - two\n    - three", 16, ["- one\n    - two", "    - three"]),
    ],
)
def test_a_part_ends_where_a_reader_pauses(text: str, most: int, found: list[str]) -> None:
    if "https" in text:  # no pause but in front of it
        found = ["see", "https://example.com/a/long/path", "now"]
    assert parts(text, max_chars=most) == found


@pytest.mark.clause("ANN-6")
def test_a_block_of_code_is_not_torn_where_it_fits_a_part() -> None:
    code = "```\n" + "code\n" * 10 + "```"

    assert parts("word " * 20 + "\n" + code + "\nend", max_chars=110) == [
        ("word " * 20).strip(),
        code + "\nend",
    ]


@pytest.mark.clause("ANN-6")
def test_each_piece_of_a_long_block_of_code_has_its_own_fences() -> None:
    lines = [f"line({number})" for number in range(90)]
    found = parts("Look:\n\n```python\n" + "\n".join(lines) + "\n```\n\nDone.", max_chars=200)

    assert len(found) > 3
    assert all(part.count("```") % 2 == 0 for part in found)
    assert all(part.startswith("```python\n") for part in found[1:-1])
    assert [line for part in found for line in part.splitlines() if line.startswith("line")] == lines
    assert found[-1].endswith("Done.")


@pytest.mark.clause("ANN-6")
def test_nine_thousand_characters_arrive_whole() -> None:
    text = " ".join(f"word{number}" for number in range(1_200))
    found = parts(text, max_chars=4096)

    assert (len(text) > 9_000, len(found)) == (True, 3)
    assert " ".join(found) == text


@pytest.mark.clause("ANN-6")
def test_a_channel_without_room_for_one_character_refuses_the_text() -> None:
    channel = Channel(deliver=print, max_chars=3, escape=lambda text: text.replace("&", "&amp;"))

    with pytest.raises(DeliveryRefused, match="max_chars=3 has no room for '&'"):
        fitted("a & b", channel, 2)


@pytest.mark.clause("ANN-6")
@pytest.mark.parametrize("most", [0, -1, True, 4.5, "4096"])
def test_a_limit_that_is_none_is_refused_when_the_channel_is_given(most: Any) -> None:
    caller = ChannelCaller()
    try:
        with pytest.raises(ToolRefused, match=re.escape(f"max_chars={most!r} is no number of characters")):
            caller.register("telegram", Channel(deliver=print, max_chars=most))
    finally:
        caller.stop(0)
