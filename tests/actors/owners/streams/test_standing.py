"""What managers know of sessions is what was recorded, not what a command proposed."""

import pytest

from intersession_actors.owners.streams.standing import Generations
from intersession_events.facts import SessionArchived, SessionOpened, SessionReset
from support.bare_events import bare

KEY = "agent:aide:main"


def told(generations: Generations, *events: SessionOpened | SessionReset | SessionArchived) -> None:
    generations.take([bare(f"session:{KEY}", version, event) for version, event in enumerate(events, 1)])


def opened(session_id: str) -> SessionOpened:
    return SessionOpened(key=KEY, session_id=session_id, agent_id="aide", opened_by="send")


@pytest.mark.clause("LOOP-2")
def test_of_two_that_would_open_a_session_the_refused_one_ends_nothing_of_the_other() -> None:
    generations = Generations()
    generations.watch(KEY, by="exchange:refused")  # would have opened it as "never"
    generations.watch(KEY, by="exchange:accepted")
    told(generations, opened("first"))
    generations.unwatch(KEY, by="exchange:refused")

    assert not generations.is_over(KEY, "first")
    told(generations, SessionReset(session_id="second", previous_session_id="first"))
    assert generations.is_over(KEY, "first")
    assert not generations.is_over(KEY, "second")


@pytest.mark.clause("LOOP-2")
def test_what_is_not_watched_is_not_kept() -> None:
    generations = Generations()
    told(generations, opened("first"), SessionArchived(session_id="first", reason="deleted"))
    assert not generations.is_over(KEY, "first")

    generations.watch(KEY, by="exchange:one")
    told(generations, SessionArchived(session_id="first", reason="deleted"))
    assert generations.is_over(KEY, "first")
    generations.unwatch(KEY, by="exchange:one")
    assert not generations.is_over(KEY, "first")


@pytest.mark.clause("LOOP-2")
def test_what_was_open_at_the_start_is_followed_though_another_is_over_before_it_goes_on() -> None:
    generations = Generations()
    generations.found(KEY, "first", by="exchange:open")
    generations.watch(KEY, by="exchange:refused")
    generations.unwatch(KEY, by="exchange:refused")
    told(generations, SessionReset(session_id="second", previous_session_id="first"))

    assert generations.is_over(KEY, "first")
    generations.unwatch(KEY, by="exchange:open")
    assert not generations.is_over(KEY, "first")
