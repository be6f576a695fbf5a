"""Which messages a summary is made of: the oldest that no summary covers, never a call without its results, and not the newest turns."""

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.prompt.fencing import shortened
from intersession_actors.rules.prompt.fitting import NotAtHand, Summary, to_compact, tokens_of
from intersession_events.facts import Fit, Message, Provenance, ToolCallBlock

PERSON: Final = Provenance(kind="external_user")


def turn(number: int, size: int, tools: int) -> list[Message]:
    """A turn: the message of a person, calls of tools with their results, and the answer."""
    asked = Message(id=f"q{number}", role="user", content="q" * size, timestamp=0, provenance=PERSON)
    blocks = tuple(ToolCallBlock(id=f"{number}.{at}", name="look", arguments="{}") for at in range(tools))
    called = [Message(id=f"c{number}", role="assistant", content=blocks, timestamp=0)] if tools else []
    gave = [
        Message(
            id=f"r{number}.{at}", role="toolResult", content="r" * size, timestamp=0, tool_call_id=block.id
        )
        for at, block in enumerate(blocks)
    ]
    answer = Message(id=f"a{number}", role="assistant", content="a" * size, timestamp=0)
    return [asked, *called, *gave, answer]


def talk(*shape: tuple[int, int]) -> list[Message]:
    return [message for number, (size, tools) in enumerate(shape) for message in turn(number, size, tools)]


def part(
    transcript: Sequence[Message], room: int, keep: int = 0, covered: int = 0, text: str = "so far"
) -> Fit | None:
    tokens = [tokens_of(one) for one in transcript]
    summary = None
    if covered:
        summary = Summary(run_id="s", messages=covered, tokens=sum(tokens[:covered]), text=text)
    return to_compact(transcript, (0, tokens), room=room, keep=keep, summary=summary, needed=50)


@pytest.mark.clause("CTX-5")
def test_the_oldest_turns_are_summarised_and_the_newest_stay() -> None:
    transcript = talk(*[(300, 0)] * 10)  # 20 messages of 124 tokens

    assert part(transcript, 5_000, keep=600) == Fit(
        left_out=0, until=16, earlier_chars=2_500, summary=None, summarised=0
    )
    assert part(transcript, 1_000, keep=600) == Fit(left_out=0, until=7, earlier_chars=500)
    assert part(transcript, 1_000, keep=600, covered=8) == Fit(
        left_out=8, until=14, earlier_chars=500, summary="s", summarised=8
    )
    assert part(transcript, 1_000, keep=5_000) is None
    assert part(transcript, 1_000, keep=600, covered=16) is None


@pytest.mark.clause("CTX-5")
def test_a_backlog_of_more_than_eight_rounds_is_summarised_from_there_on() -> None:
    transcript = talk(*[(300, 0)] * 200)  # 400 messages of 124 tokens; 950 of 1,000 tokens are for them
    found = part(transcript, 1_000)

    assert found is not None
    assert found.left_out == 339
    assert found.lost == 339
    assert found.until == 346


@pytest.mark.clause("CTX-5")
def test_a_call_with_results_that_are_longer_than_the_window_is_cut_until_it_fits() -> None:
    transcript = talk((5_000, 6), (10, 0))
    found = part(transcript, 2_000, keep=100, covered=1)

    assert found is not None
    assert (found.left_out, found.until) == (1, 9)
    assert found.earlier_chars is not None
    assert sum(tokens_of(shortened(one, found.earlier_chars)) for one in transcript[1:9]) <= 1_950


@pytest.mark.clause("CTX-5")
def test_messages_that_are_not_at_hand_have_to_be_read_to_be_counted() -> None:
    transcript = talk(*[(300, 0)] * 10)
    tokens = [tokens_of(one) for one in transcript]

    with pytest.raises(NotAtHand):
        to_compact(transcript, (4, tokens[4:]), room=900, keep=0, summary=None, needed=0)
    covered = Summary(run_id="s", messages=4, tokens=sum(tokens[:4]), text="so far")
    found = to_compact(transcript, (4, tokens[4:]), room=900, keep=0, summary=covered, needed=0)
    assert found is not None
    assert found.left_out == 4


@pytest.mark.clause("CTX-5")
@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 4)), max_size=30),
    st.integers(200, 4_000),
    st.integers(0, 4_000),
    st.data(),
)
def test_each_summary_goes_on_where_the_last_one_ended_until_only_the_newest_turns_are_left(
    shape: list[tuple[int, int]], room: int, keep: int, data: st.DataObject
) -> None:
    transcript, covered, rounds = talk(*shape), 0, 0
    while (found := part(transcript, room, keep, covered, "s" * data.draw(st.integers(1, 300)))) is not None:
        assert found.until is not None
        assert covered <= found.left_out < found.until <= len(transcript)
        assert transcript[found.until - 1 : found.until + 1][-1].role != "toolResult"
        covered, rounds = found.until, rounds + 1
        assert rounds <= len(transcript)
    left = transcript[covered:]
    assert sum(map(tokens_of, left)) <= keep
    assert not left or left[0].role == "user"
