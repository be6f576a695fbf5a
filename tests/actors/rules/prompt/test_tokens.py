"""The words that mean silence, and all that only looks like them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.prompt.silence import (
    ANNOUNCE_SKIP,
    NO_REPLY,
    REPLY_SKIP,
    is_announce_skip,
    is_reply_skip,
    visible_text,
)
from support import hostile

REPLIES = hostile.rows("T", field="reply in ping-pong step")
ANNOUNCES = hostile.rows("T", field="announce reply")


@pytest.mark.clause("LOOP-2", "X5")
@pytest.mark.parametrize("row", REPLIES, ids=hostile.row_id)
def test_a_reply_ends_the_loop_only_if_it_is_exactly_the_word(row: dict[str, Any]) -> None:
    assert is_reply_skip(row["input"]) is (row["expect"] == "skip")


@pytest.mark.clause("ANN-1")
@pytest.mark.parametrize("row", ANNOUNCES, ids=hostile.row_id)
def test_the_wrong_word_is_announced_as_text(row: dict[str, Any]) -> None:
    assert row["expect"] == "delivered as text"
    assert not is_announce_skip(row["input"])
    assert visible_text(row["input"]) == row["input"]


@pytest.mark.clause("ANN-1")
@pytest.mark.parametrize("text", ["ANNOUNCE_SKIP", " ANNOUNCE_SKIP\r\n\t"])
def test_an_announce_is_silent_on_exactly_the_word(text: str) -> None:
    assert is_announce_skip(text)


@pytest.mark.clause("LOOP-2", "ANN-1", "LOOP-6")
@pytest.mark.parametrize(
    "odd", ["\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u2003", "\u2028", "\ufeff", "\x00"]
)
def test_white_space_that_is_not_ascii_is_text(odd: str) -> None:
    assert not is_reply_skip(REPLY_SKIP + odd)
    assert not is_announce_skip(odd + ANNOUNCE_SKIP)
    assert visible_text(NO_REPLY + odd) == NO_REPLY + odd
    assert visible_text(odd) == odd


@pytest.mark.clause("LOOP-6", "SEND-5")
@pytest.mark.parametrize("text", [None, "", " \t\r\n", "NO_REPLY", "\nNO_REPLY \t"])
def test_nothing_and_no_reply_are_no_text(text: str | None) -> None:
    assert visible_text(text) is None


@pytest.mark.clause("LOOP-6")
@pytest.mark.parametrize("text", ["HEARTBEAT_OK", "<br>", "**NO_REPLY**", "no_reply", "NO_REPLY.", " a "])
def test_everything_else_is_text_as_it_was_given(text: str) -> None:
    assert visible_text(text) == text


@given(st.text())
@pytest.mark.clause("LOOP-2", "LOOP-6", "ANN-1")
def test_a_text_is_at_most_one_of_the_words(text: str) -> None:
    verdicts = (is_reply_skip(text), is_announce_skip(text), visible_text(text) is None)
    assert sum(verdicts) == (text.strip(" \t\r\n") in {"", REPLY_SKIP, ANNOUNCE_SKIP, NO_REPLY})
