"""What a verification remembers is the same whether it is in memory or in a temporary file."""

from hypothesis import given
from hypothesis import strategies as st

from intersession_events.log.verifying.spilled import End, Repeats, StreamEnds

streams = st.sampled_from([f"session:{number}" for number in range(12)] + ["", "ä", "session:1:a"])


@given(st.lists(st.tuples(streams, st.integers(0, 9), st.sampled_from([None, "hash"])), max_size=60))
def test_where_a_stream_ends_is_what_was_said_of_it_last(told: list[tuple[str, int, str | None]]) -> None:
    """Issue 9: verification held a table of all streams in memory."""
    ends, known = StreamEnds(at_hand=2), dict[str, End]()
    for stream, version, hashed in told:
        assert ends.get(stream) == known.get(stream)
        known[stream] = End(version, hashed)
        ends.put(stream, known[stream])
        assert len(ends) == len(known)
    assert {stream: ends.get(stream) for stream in known} == known
    assert len(ends._young) + len(ends._old) <= 4
    ends.close()


@given(st.lists(st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 5, 6, 7]), max_size=40))
def test_what_was_told_more_than_once_is_found(numbers: list[int]) -> None:
    repeats = Repeats(at_hand=3)
    for number in numbers:
        repeats.tell(number)
        assert len(repeats._seen) <= 3
    assert repeats.twice() == {number for number in numbers if numbers.count(number) > 1}
    repeats.close()
