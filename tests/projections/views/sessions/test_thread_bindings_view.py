"""Which thread belongs to which session: the inline view follows what the sessions' streams say."""

import pytest

from intersession_events.facts import Route, SessionArchived, ThreadBound, ThreadUnbound
from intersession_projections.views.sessions.threads import ThreadBindings
from support.story import Story

CHILD, OTHER = "agent:main:subagent:1", "agent:main:subagent:2"
THREAD = Route(channel="discord", to="42", thread="t1")
SIMILAR = [
    Route(channel="discord", to="42", thread="t2"),
    Route(channel="discord", to="43", thread="t1"),
    Route(channel="slack", to="42", thread="t1"),
    Route(channel="discord", to="42", thread="t1", account="work"),
    Route(channel="discord", to="42"),
]


def bind(story: Story, key: str = CHILD, route: Route = THREAD, **fields: int) -> None:
    story.open(key)
    story.put(f"session:{key}", ThreadBound(route=route, **fields))


@pytest.mark.clause("SPAWN-12")
def test_a_thread_is_found_by_its_whole_address(story: Story) -> None:
    bind(story)
    threads = ThreadBindings(story.log)

    assert threads.session_of(THREAD) == CHILD
    assert threads.of(CHILD) == THREAD
    assert [threads.session_of(route) for route in SIMILAR] == [None] * len(SIMILAR)


@pytest.mark.clause("SPAWN-12")
@pytest.mark.parametrize(
    "event",
    [ThreadUnbound(route=THREAD, reason="unbound"), SessionArchived(session_id="s", reason="expired")],
    ids=["unbound", "archived"],
)
def test_it_belongs_to_nobody_when_it_is_unbound_or_its_session_archived(
    story: Story, event: ThreadUnbound | SessionArchived
) -> None:
    bind(story)
    story.put(f"session:{CHILD}", event)

    assert ThreadBindings(story.log).session_of(THREAD) is None
    assert ThreadBindings(story.log).of(CHILD) is None


@pytest.mark.clause("SPAWN-12")
def test_of_two_sessions_the_one_that_was_bound_last_has_it(story: Story) -> None:
    bind(story)
    bind(story, OTHER)
    threads = ThreadBindings(story.log)
    assert threads.session_of(THREAD) == OTHER

    story.put(f"session:{OTHER}", ThreadUnbound(route=THREAD, reason="idle"))

    assert threads.session_of(THREAD) == CHILD


def test_only_those_that_have_a_thread_for_a_time_are_to_be_watched(story: Story) -> None:
    bind(story)
    bind(story, OTHER, SIMILAR[0], idle_ms=1)

    assert ThreadBindings(story.log).limited_sessions() == [OTHER]
