"""What is used within the last hour and day, by minutes."""

from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.owners.chains.spending import Spent, _Account

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
STEPS = st.lists(st.tuples(st.integers(-2 * MINUTE, HOUR * 5), st.integers(0, 9)), max_size=60)


@given(steps=STEPS, window=st.sampled_from([HOUR, DAY]))
def test_all_that_was_used_in_the_minutes_of_a_window_counts(
    steps: list[tuple[int, int]], window: int
) -> None:
    account, now, used = _Account(), DAY, list[tuple[int, int]]()
    for step, tokens in steps:
        now += step
        # A clock that was set back takes nothing back.
        minute = max([now // MINUTE, *(at for at, _ in used)])
        account.add(now, Spent(1, tokens, 0))
        used.append((minute, tokens))

    within = [tokens for minute, tokens in used if minute > (now - window) // MINUTE]
    assert account.since(now - window) == Spent(len(within), sum(within), 0)
    assert len(account.minutes) <= DAY // MINUTE + 1
