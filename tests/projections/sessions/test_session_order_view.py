"""The order of the list, page by page, is the order of all rows at once; whatever is asked, seen or written meanwhile."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intersession_events.facts import SessionArchived, SessionOpened, SessionPatched
from intersession_events.log import ANY_VERSION, Draft, StreamAppend
from intersession_projections.sessions import Seen, Sessions
from intersession_projections.sessions.order import Place
from support.story import Story, listed

AGENTS = ("main", "ops", "desk")
KEYS = [f"agent:{AGENTS[number % 3]}:named-{number}" for number in range(900)]


def opened(key: str, time: int) -> StreamAppend:
    event = SessionOpened(key=key, session_id=f"s-{key}", agent_id=key.split(":")[1], opened_by="operator")
    draft = Draft(event=event, id=f"opened-{key}", time=time)
    return StreamAppend(stream=f"session:{key}", expected=ANY_VERSION, drafts=(draft,))


@pytest.fixture(scope="module")
def crowd() -> Iterator[Story]:
    """Return a log with more sessions than a page holds, most of them updated at the same few times."""
    story = Story()
    times = [1_000 if number < 700 else 1_000 + number % 5 for number in range(len(KEYS))]
    story.log.append_now([opened(key, time) for key, time in zip(KEYS, times, strict=True)])
    for key in KEYS[::100]:
        story.put(f"session:{key}", SessionArchived(session_id=f"s-{key}", reason="deleted"))
    for key in KEYS[50::100]:
        story.put(f"session:{key}", SessionPatched(values={"label": "late"}), time=5_000)
    yield story
    story.close()


def seeing(agents: frozenset[str], keys: frozenset[str]) -> Seen:
    return Seen(agents.__contains__, keys)


@pytest.mark.clause("LIST-2", "LIST-3", "LIST-7", "VIS-2")
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_what_is_asked_for_is_what_a_look_at_every_row_gives(crowd: Story, data: st.DataObject) -> None:
    sessions, head = Sessions(crowd.log), crowd.log.head()
    position = data.draw(st.sampled_from([None, head, head - 1, head - 12, len(KEYS), 500, 1, 0]), "position")
    agent_id = data.draw(st.none() | st.sampled_from(AGENTS), "agent")
    seen = data.draw(
        st.none()
        | st.builds(
            seeing,
            st.frozensets(st.sampled_from(AGENTS), max_size=2),
            st.sampled_from(
                [frozenset(), frozenset(KEYS[:3]), frozenset(KEYS[::2]), frozenset(["agent:main:none"])]
            ),
        ),
        "seen",
    )
    since = data.draw(st.sampled_from([0, 1_000, 1_003, 9_000]), "since")
    rows = [row for row in listed(sessions, position) if agent_id is None or row.agent_id == agent_id]
    ranks = [(-row.updated_at, row.key) for row in rows]
    behind = data.draw(st.none() | st.sampled_from(ranks or [(-1, "")]), "behind")

    order = sessions.order(position, agent_id=agent_id, seen=seen)
    places = list(order.places(updated_since=since, behind=behind))

    visible = [row for row in rows if seen is None or seen.agent(row.agent_id) or row.key in seen.keys]
    assert [(place.key, place.position) for place in places] == [
        (row.key, row.position)
        for row in visible
        if row.updated_at >= since and (behind is None or (-row.updated_at, row.key) > behind)
    ]
    assert order.hidden() == len(rows) - len(visible)


@pytest.mark.clause("LIST-3")
def test_all_sessions_that_are_not_archived_are_in_it_in_order(crowd: Story) -> None:
    places = list(Sessions(crowd.log).order().places())

    assert places == sorted(places)
    assert {place.key for place in places} == set(KEYS) - set(KEYS[::100])


@pytest.mark.clause("LIST-7")
@pytest.mark.parametrize("read", [0, 1, 300, 700])
def test_what_is_written_between_two_pages_moves_nothing(read: int) -> None:
    story = Story()
    story.log.append_now([opened(key, 1_000 + at // 7) for at, key in enumerate(KEYS)])
    sessions = Sessions(story.log)
    before = list(sessions.order().places())
    places = sessions.order().places()

    begun: list[Place] = [next(places) for _ in range(read)]
    for key in (KEYS[0], KEYS[450], KEYS[899]):
        story.say(key, "up I go")
    story.put(f"session:{KEYS[3]}", SessionArchived(session_id=f"s-{KEYS[3]}", reason="deleted"))
    story.open("agent:main:newcomer")

    assert begun + list(places) == before
    story.close()
