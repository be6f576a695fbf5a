"""What follows in an event: it is read by itself, found by its kind, and erased with the event that it stands in."""

import pytest

from intersession_events import facts

ENDED: facts.Event = facts.TurnEnded(turn=1, speaker="agent:main:main", run_id="r", status="ok", text="bye")
LOOP = facts.LoopEnded(reason="turn_limit", turns=1, note="it was told")
SAID = facts.AnnounceDecided(text="all is well", run_id="r2")
CLOSED = facts.ExchangeClosed(reason="no_route", note="nowhere")
DECIDED: list[facts.Event] = [ENDED, LOOP, SAID, CLOSED]


@pytest.mark.clause("O2")
def test_what_was_joined_is_read_as_it_was_decided_also_from_its_stored_form() -> None:
    (event,) = facts.joined(DECIDED)
    read = facts.decode(facts.topic_of(event), facts.encode(event))

    assert read == event
    assert list(facts.parts_of(read)) == DECIDED
    assert facts.joined([ENDED]) == (ENDED,)
    assert facts.joined([]) == ()


@pytest.mark.clause("ERASE-1")
def test_the_words_of_what_follows_are_erased_as_well() -> None:
    (event,) = facts.joined(DECIDED)
    left = facts.unsaid(event)

    assert list(facts.words(event)) == ["bye", "it was told", "all is well", "nowhere"]
    assert set(facts.words(left)) == {"[erased]"}
    assert list(facts.parts_of(left)) == list(map(facts.unsaid, DECIDED))


@pytest.mark.clause("WHY-1")
def test_a_run_that_is_asked_for_is_found_in_the_event_that_it_follows_in() -> None:
    asked = facts.TurnRequested(turn=2, speaker="agent:ops:main", run_id="r3", message_id="m")

    assert facts.run_asked_in(facts.joined([ENDED, asked])[0]) == asked
    assert facts.run_asked_in(asked) == asked
    assert facts.run_asked_in(ENDED) is None
