"""Texts to one place go out in order; one that fails for long does not hold up the others for ever."""

from collections.abc import Callable

import pytest
from msgspec import structs

from intersession_actors.outside.channels.turns import Place, Turns
from intersession_actors.owners.streams.drafting import append_of, recorded_as
from intersession_events.basics.ids import delivery_stream
from intersession_events.facts import DeliveryDecided, Route
from intersession_events.log.recorded import Recorded

LOG = "defa50b1-d108-4a4f-ad82-fa213e2a2b97"
HERE = Place("telegram", None, "42", None)


def decided(name: str, position: int, to: str = "42") -> Recorded:
    """Return the event that decides a text to a chat, as the log has it."""
    route = Route(channel="telegram", to=to)
    event = DeliveryDecided(
        delivery_id=name, session_key="agent:main:main", route=route, text=name, key=name, purpose="send"
    )
    stream = delivery_stream(name)
    append = append_of(LOG, stream, 0, (event,), time=0, causation=None, correlation=None)
    return structs.replace(recorded_as(append)[0], position=position)


class Line:
    """Texts that ask for their turn; what was told to them is in `told`."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.told: list[str] = []

    def takes(self, key: str, order: int, place: Place = HERE) -> bool:
        return self.turns.is_next(place, key, order, self.telling(key))

    def telling(self, key: str) -> Callable[[], None]:
        return lambda: self.told.append(key)


@pytest.mark.clause("ANN-5")
def test_a_text_waits_for_those_before_it_and_hears_when_it_may_go() -> None:
    line = Line()

    assert line.takes("first", 1)
    assert not line.takes("second", 2)
    assert not line.takes("third", 3)
    line.turns.over("first")
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
def test_a_text_that_fails_holds_the_others_however_long_until_it_is_over() -> None:
    """Before: after ten minutes the next one was tried behind each failure, and could arrive first as a service came back."""
    line = Line()
    assert line.takes("first", 1)
    assert not line.takes("second", 2)
    for _ in range(100):
        line.turns.failed("first")
        assert line.turns.waits("second")
        assert not line.takes("second", 2)
        assert line.takes("first", 1)
    assert line.told == []

    line.turns.over("first")

    assert line.told == ["second"]
    assert line.takes("second", 2)


@pytest.mark.clause("ANN-5")
def test_a_text_that_is_recorded_first_goes_first_whichever_is_asked_for_first() -> None:
    """Before: the order was that in which sessions told the outbox."""
    line = Line()
    line.turns.take([decided("first", 1), decided("second", 2)])

    assert not line.takes("delivery:second", 2)
    assert line.takes("delivery:first", 1)


@pytest.mark.clause("ANN-7")
def test_texts_are_numbered_from_the_first_one_that_was_counted() -> None:
    line = Line()
    line.turns.take([decided("a", 7)])
    assert line.turns.number("delivery:a") is None
    line.turns.numbered("delivery:a", 3)
    line.turns.take([decided("b", 8), decided("c", 12), decided("x", 13, to="43")])

    numbers = [line.turns.number(f"delivery:{name}") for name in "abcx"]
    assert numbers == [3, 4, 5, None]


@pytest.mark.clause("ANN-7")
def test_nothing_is_counted_on_from_a_text_behind_which_others_were_recorded_meanwhile() -> None:
    line = Line()
    line.turns.take([decided("a", 7), decided("b", 8)])
    line.turns.over("delivery:b")  # forbidden, say
    line.turns.numbered("delivery:a", 3)
    line.turns.take([decided("c", 9)])

    assert line.turns.number("delivery:c") is None


@pytest.mark.clause("ANN-5")
def test_nothing_is_kept_of_texts_that_are_over() -> None:
    line = Line()
    for number in range(100):
        line.takes(str(number), number, HERE._replace(to=str(number % 7)))
    for number in range(100):
        line.turns.over(str(number))

    assert len(line.turns) == 0
