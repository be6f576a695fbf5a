"""Pieces of an answer: together they are the text, whoever listens, and nothing of a word for silence is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.outside.agents.pieces import Pieces, Utterance
from intersession_actors.outside.agents.turn import BadPiece, ReplyTooLarge
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.prompt.silence import ANNOUNCE_SKIP, NO_REPLY, REPLY_SKIP, shown_text

WORDS = (NO_REPLY, REPLY_SKIP, ANNOUNCE_SKIP)
TEXTS = st.text(st.characters(codec="utf-8"))


def pieces(running: set[tuple[str, int]] | None = None, most: int = 1 << 20) -> Pieces:
    known = {("r", 1)} if running is None else running
    return Pieces(lambda run_id, attempt: (run_id, attempt) in known, most)


@pytest.mark.clause("STREAM-2")
@given(said=st.lists(TEXTS, max_size=20), read=st.sets(st.integers(0, 20)))
def test_pieces_are_the_text_in_their_order_whenever_it_is_read(said: list[str], read: set[int]) -> None:
    kept = pieces()
    for number, piece in enumerate(said):
        kept.add("agent:main:main", "r", 1, piece)
        if number in read:
            shown = kept.of("r")
            assert shown == Utterance("agent:main:main", 1, "".join(said[: number + 1]))

    assert said == [] or kept.of("r") == Utterance("agent:main:main", 1, "".join(said))


@pytest.mark.clause("STREAM-2")
@given(
    text=st.one_of(
        TEXTS, st.sampled_from(WORDS).flatmap(lambda word: st.integers(0, 9).map(lambda n: word[:n]))
    )
)
def test_what_is_shown_is_the_text_or_nothing_and_never_a_part_of_a_word_for_silence(text: str) -> None:
    shown = shown_text(text)

    assert shown in {"", text}
    assert (shown == "") == any(word.startswith(text.strip(" \t\r\n")) for word in WORDS)


@pytest.mark.clause("STREAM-1", "STREAM-3")
def test_what_an_attempt_may_not_say_is_refused_and_leaves_what_it_had_said() -> None:
    running = {("r", 1)}
    kept = pieces(running, most=5)
    kept.add("agent:main:main", "r", 1, "abc")

    with pytest.raises(BadPiece, match="yielded int"):
        kept.add("agent:main:main", "r", 1, 5)  # type: ignore[arg-type]
    with pytest.raises(ReplyTooLarge, match="more than 5 bytes"):
        kept.add("agent:main:main", "r", 1, "def")
    running.clear()
    with pytest.raises(ToolRefused, match="this attempt is over"):
        kept.add("agent:main:main", "r", 1, "d")

    assert kept.of("r") == Utterance("agent:main:main", 1, "abc")


@pytest.mark.clause("STREAM-3")
def test_a_later_attempt_begins_anew_and_an_earlier_one_can_not_end_it() -> None:
    told: list[str] = []
    kept = pieces({("r", 1), ("r", 2)})
    stop = kept.watch(told.append, "r")
    kept.add("agent:main:main", "r", 1, "abc")
    kept.add("agent:main:main", "r", 2, "d")
    kept.over("r", 1)

    assert kept.of("r") == Utterance("agent:main:main", 2, "d")
    kept.over("r", 2)
    stop()
    kept.add("agent:main:main", "r", 2, "e")
    assert told == ["r", "r", "r"]
