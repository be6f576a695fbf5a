"""Texts to one place go out in order; one that fails for long does not hold up the others for ever."""

from collections.abc import Callable

import pytest

from intersession_actors.outside.channels.turns import Place, Turns
from support.fakes import ManualClock

HERE = Place("telegram", None, "42", None)


class Line:
    """Texts that ask for their turn; what was told to them is in `told`."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.turns = Turns(self.clock)
        self.told: list[str] = []

    def takes(self, key: str, order: int, place: Place = HERE) -> bool:
        return self.turns.take(place, key, order, self.telling(key))

    def telling(self, key: str) -> Callable[[], None]:
        return lambda: self.told.append(key)


@pytest.mark.clause("ANN-5")
def test_a_text_waits_for_those_before_it_and_hears_when_it_may_go() -> None:
    line = Line()

    assert line.takes("first", 1)
    assert not line.takes("second", 2)
    assert not line.takes("third", 3)
    line.turns.over("first", arrived=True)
    assert line.told == ["second"]
    assert line.takes("second", 2)
    assert not line.takes("third", 3)


@pytest.mark.clause("ANN-5")
@pytest.mark.parametrize(
    "elsewhere",
    [
        HERE._replace(to="43"),
        HERE._replace(thread="7"),
        HERE._replace(account="b"),
        HERE._replace(channel="x"),
    ],
)
def test_other_places_go_on(elsewhere: Place) -> None:
    line = Line()
    assert line.takes("first", 1)

    assert line.takes("second", 2, elsewhere)


@pytest.mark.clause("ANN-5")
def test_a_text_that_is_read_late_is_before_those_that_were_decided_after_it() -> None:
    line = Line()
    line.turns.enter(HERE, "second", 2)
    line.turns.enter(HERE, "first", 1)

    assert not line.takes("second", 2)
    assert line.takes("first", 1)


@pytest.mark.clause("ANN-5")
def test_a_text_that_fails_holds_the_others_for_ten_minutes() -> None:
    line = Line()
    assert line.takes("first", 1)
    assert not line.takes("second", 2)
    line.turns.failed("first")
    assert line.turns.waits("second")
    line.clock.advance(599_000)
    assert line.takes("first", 1)
    line.turns.failed("first")
    assert line.told == []

    line.clock.advance(1_000)
    assert line.takes("first", 1)
    line.turns.failed("first")

    assert line.told == ["second"]
    assert line.takes("second", 2)


@pytest.mark.clause("ANN-5")
def test_in_a_long_outage_the_order_is_kept() -> None:
    """The second text is tried behind the first, fails as well, and waits again: the service is away for all."""
    line = Line()
    line.takes("first", 1)
    line.takes("second", 2)
    line.turns.failed("first")
    line.clock.advance(600_000)
    line.turns.failed("first")
    assert line.takes("second", 2)
    line.turns.failed("second")

    assert not line.takes("second", 2)
    assert not line.takes("third", 3)
    line.turns.over("first", arrived=True)
    assert line.told == ["second", "second"]
    assert line.takes("second", 2)
    assert not line.takes("third", 3)


@pytest.mark.clause("ANN-5")
def test_a_text_that_fails_alone_is_left_to_itself() -> None:
    line = Line()
    line.takes("first", 1)
    line.takes("second", 2)
    line.takes("third", 3)
    line.turns.failed("first")
    line.clock.advance(600_000)
    line.turns.failed("first")
    assert line.takes("second", 2)
    line.turns.over("second", arrived=True)

    assert line.told == ["second", "third"]
    assert line.takes("third", 3)
    assert line.takes("first", 1)  # whenever its own time comes


@pytest.mark.clause("ANN-5")
def test_nothing_is_kept_of_texts_that_are_over() -> None:
    line = Line()
    for number in range(100):
        line.takes(str(number), number, HERE._replace(to=str(number % 7)))
    for number in range(100):
        line.turns.over(str(number))

    assert len(line.turns) == 0
