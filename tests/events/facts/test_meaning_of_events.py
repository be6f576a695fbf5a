"""What an event means stands on its class: forgetting it there is red."""

from typing import get_args

import pytest

from intersession_events.facts import TOPICS, Event, Fact
from intersession_events.facts.base import Work

WORK: frozenset[str] = frozenset(get_args(Work))


def test_each_event_has_a_stored_name_of_its_own() -> None:
    assert len(TOPICS) == len(get_args(Event)) == 68
    assert all(kind.topic == topic for topic, kind in TOPICS.items())


@pytest.mark.parametrize("kind", TOPICS.values(), ids=lambda kind: kind.__name__)
def test_each_event_says_itself_how_it_is_put_into_words(kind: type[Event]) -> None:
    assert kind.in_words is not Fact.in_words


def test_whatever_is_begun_is_ended_by_some_event() -> None:
    kinds = TOPICS.values()

    assert (
        {kind.begins for kind in kinds if kind.begins} == {kind.ends for kind in kinds if kind.ends} == WORK
    )
