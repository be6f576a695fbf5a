"""Secrets are hidden in whatever an event has of words, and in whatever other thing they may stand in."""

import pytest

from intersession_actors.rules.disclosure.events import hidden_event
from intersession_events.facts import TOPICS, Event, encode, unsaid
from support.vocabulary import full_of

SECRET = "sk-ant-api03-abcdef0123456789abcdef0123456789WXYZ"


@pytest.mark.clause("HIST-5")
@pytest.mark.parametrize("kind", TOPICS.values(), ids=lambda kind: kind.__name__)
def test_no_word_of_an_event_is_a_secret_when_others_read_it(kind: type[Event]) -> None:
    event = full_of(kind, f"here it is: {SECRET}")

    hidden = hidden_event(event)

    assert encode(hidden).count(SECRET.encode()) <= encode(unsaid(event)).count(SECRET.encode())
