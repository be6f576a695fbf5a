"""When an actor or a flow that fails is given up."""

import pytest

from intersession_actors.owners.streams.shell import Failures


@pytest.mark.clause("O9")
def test_the_fourth_failure_in_five_seconds_is_one_too_many() -> None:
    failures = Failures()

    assert [failures.too_many(now) for now in (0.0, 1.0, 2.0, 5.0)] == [False, False, False, True]


@pytest.mark.clause("O9")
def test_failures_that_come_more_seldom_are_never_too_many() -> None:
    failures = Failures()

    assert not any(failures.too_many(number * 1.7) for number in range(20))
