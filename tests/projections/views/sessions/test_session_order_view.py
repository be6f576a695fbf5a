"""The order of the list, page by page, is the order of all rows at once; whatever is asked, seen or written meanwhile."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import (
    Event,
    Message,
    MessageRecorded,
    Route,
    RouteChanged,
    SessionArchived,
    SessionImported,
    SessionOpened,
    SessionPatched,
    SessionReset,
)
from intersession_events.log.log import Log, Moment
from intersession_events.log.recorded import ANY_VERSION, Draft, Recorded, StreamAppend
from intersession_events.log.sql import Row, SqlValue
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.sessions.list import Sessions
from intersession_projections.views.sessions.merged import Place
from intersession_projections.views.sessions.row import SessionRow, evolve_row
from intersession_projections.views.sessions.search import matches
from intersession_projections.views.sessions.session_filter import SessionFilter, VisibleSessions
from intersession_projections.views.sessions.sets import KINDS
from support.plain_log import PlainLog
from support.story import Story
from support.transacting import transact

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


@pytest.mark.clause("LIST-2", "LIST-3", "LIST-7", "VIS-2")
@settings(deadline=None, max_examples=60)
@given(data=st.data())
@pytest.mark.ci
def test_each_page_of_a_crowd_is_what_a_look_at_every_row_gives(crowd: Story, data: st.DataObject) -> None:
    head = crowd.log.head()
    position = data.draw(st.sampled_from([head, head - 1, head - 12, len(KEYS), 500, 1, 0]), "position")
    seen = data.draw(
        st.none()
        | st.builds(seeing, st.frozensets(st.sampled_from(AGENTS), max_size=2), st.sampled_from(KEYS[:3])),
        "seen",
    )
    wanted = SessionFilter(
        agent_id=data.draw(st.none() | st.sampled_from(AGENTS), "agent"),
        label=data.draw(st.sampled_from([None, None, "late", "none"]), "label"),
        seen=seen,
    )
    text = data.draw(st.sampled_from([None, None, "named-7", "-4", "LATE", "1"]), "text")
    check(crowd.log, list(crowd.log.all(to=position)), (wanted, text), data)


def check(
    log: Log, events: list[Recorded], asked: tuple[SessionFilter, str | None], data: st.DataObject
) -> None:
    """Compare what the list answers, as it stood after some events, with a look at every row that they make."""
    wanted, text = asked
    position, every = len(events), folded(events)
    rows = sorted(
        (row for row in every.values() if row.archived is None), key=lambda row: (-row.updated_at, row.key)
    )
    ranks = [(-row.updated_at, row.key) for row in rows]
    since = data.draw(st.sampled_from([0, *(row.updated_at for row in rows[:3])]), "since")
    behind = data.draw(st.none() | st.sampled_from(ranks or [(-1, "")]), "behind")

    order = Sessions(log).order(position, wanted)
    places = (
        order.places(updated_since=since, behind=behind)
        if text is None
        else order.named(text.casefold(), updated_since=since, behind=behind)
    )
    found = list(order.rows(places))

    of_agent = [row for row in rows if wanted.agent_id in {None, row.agent_id}]
    visible = [row for row in of_agent if wanted.seen is None or is_seen(wanted.seen, row, every)]
    assert found == [
        row
        for row in visible
        if wanted.label in {None, row.label}
        and (not wanted.kinds or SessionKey.recorded(row.key).kind in wanted.kinds)
        and wanted.parent in {None, row.spawned_by}
        and (text is None or matches((row.key, row.label, row.display_name), text.casefold()))
        and row.updated_at >= since
        and (behind is None or (-row.updated_at, row.key) > behind)
    ]
    assert order.hidden() == len(of_agent) - len(visible)
    assert sum(order.numbers().values()) == len(rows)


def folded(events: list[Recorded]) -> dict[str, SessionRow]:
    """Return all rows that events make, archived ones too: event by event."""
    rows: dict[str, SessionRow] = {}
    for recorded in events:
        kind, _, key = recorded.stream.partition(":")
        row = evolve_row(rows.get(key), key, recorded) if kind == "session" else None
        if row is not None:
            rows[key] = row
    return rows


def is_seen(seen: VisibleSessions, row: SessionRow, every: dict[str, SessionRow]) -> bool:
    if seen.agent(row.agent_id) or row.key == seen.key:
        return True
    above, parent = set[str](), row.spawned_by
    while parent is not None and parent not in above:
        above.add(parent)
        parent = every[parent].spawned_by if parent in every else None
    return seen.tree and seen.key in above


def seeing(agents: frozenset[str], key: str, tree: bool = True) -> VisibleSessions:
    return VisibleSessions(agents.__contains__, key, tree)


LINEAGE = [
    "agent:main:main",
    "agent:main:whatsapp:group:1",
    "agent:ops:main",
    "agent:main:subagent:6a4d280b-fc53-4c01-9c8c-4d77a60bfa97",
]
NAMES = st.none() | st.sampled_from(["late", "Lateral", "ÀB", "x"])


def sessions_events() -> st.SearchStrategy[Event]:
    """Return what can move a session in the list, or into another part of it."""
    ids = st.sampled_from(["g1", "g2"])
    return st.one_of(
        st.builds(
            SessionOpened,
            key=st.just(""),
            session_id=ids,
            agent_id=st.sampled_from(["main", "ops"]),
            opened_by=st.sampled_from(["person", "import"]),
            spawned_by=st.none() | st.sampled_from(LINEAGE),
            label=NAMES,
            display_name=NAMES,
        ),
        st.builds(SessionArchived, session_id=ids, reason=st.just("deleted")),
        st.builds(SessionReset, session_id=ids, previous_session_id=ids),
        st.builds(
            SessionPatched,
            values=st.fixed_dictionaries({}, optional={"label": st.sampled_from(["late", "x"])}),
            cleared=st.sampled_from([(), ("label",)]),
        ),
        st.builds(
            SessionImported,
            session_id=ids,
            source=st.just(""),
            entry=st.just(""),
            updated_at=st.integers(0, 80),
            spawned_by=st.none() | st.sampled_from(LINEAGE),
            label=NAMES,
        ),
        st.builds(
            MessageRecorded,
            session_id=ids,
            message=st.builds(
                Message, id=st.just("m"), role=st.just("user"), content=st.just("x"), timestamp=st.just(1)
            ),
        ),
    )


@pytest.mark.clause("LIST-2", "LIST-4", "LIST-8", "VIS-2")
@settings(deadline=None, max_examples=150)
@given(
    told=st.lists(
        st.tuples(st.sampled_from(LINEAGE), sessions_events(), st.integers(0, 60)), min_size=1, max_size=25
    ),
    data=st.data(),
)
@pytest.mark.ci
def test_every_filter_at_every_position_is_a_look_at_every_row(
    told: list[tuple[str, Event, int]], data: st.DataObject
) -> None:
    """Before: what made the list slow is in tables now, and must say the same for any lineage and any clock."""
    log = PlainLog(inline_views())
    for key, event, time in told:
        log.put(f"session:{key}", event, time=time)
    seen = st.builds(
        seeing, st.frozensets(st.sampled_from(["main", "ops"])), st.sampled_from(LINEAGE), st.booleans()
    )
    wanted = SessionFilter(
        agent_id=data.draw(st.sampled_from([None, None, "main", "ops"]), "agent"),
        kinds=data.draw(st.frozensets(st.sampled_from(KINDS), max_size=2), "kinds"),
        label=data.draw(st.sampled_from([None, None, "late", "none"]), "label"),
        parent=data.draw(st.sampled_from([None, None, *LINEAGE]), "parent"),
        seen=data.draw(st.none() | seen, "seen"),
    )
    text = data.draw(st.sampled_from([None, None, "late", "LATE", "AGENT:", "s", "àb", "up:1"]), "text")
    position = data.draw(st.integers(0, len(told)), "position")
    check(log, log.events[:position], (wanted, text), data)


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


def named(log: Log, text: str) -> list[str]:
    return [place.key for place in Sessions(log).order().named(text)]


@pytest.mark.clause("LIST-4")
def test_names_are_found_without_an_index_of_text_too(crowd: Story) -> None:
    """An SQLite without FTS5 makes none: then rows are looked at one by one."""
    with_index = [named(crowd.log, text) for text in ("named-77", "late", "none at all")]

    transact(crowd.log, lambda sql: sql.execute("DROP TABLE session_search"))
    without = [named(crowd.log, text) for text in ("named-77", "late", "none at all")]
    crowd.log.rebuild("session_list")

    assert without == with_index
    assert [len(found) for found in with_index] == [11, 9, 0]


@pytest.mark.clause("LIST-4", "J1")
def test_names_are_found_after_a_rebuild_and_later_ones_too() -> None:
    story = Story()
    story.log.append_now([opened(key, 1_000) for key in KEYS[:200]])
    incremental = named(story.log, "named-7")
    story.log.rebuild("session_list")
    rebuilt = named(story.log, "named-7")
    story.open("agent:main:quite-new", label="Ünique")

    assert rebuilt == incremental != []
    assert named(story.log, "ünique") == named(story.log, "quite-n") == ["agent:main:quite-new"]
    story.close()


@pytest.mark.clause("LIST-4")
def test_a_name_that_came_with_a_route_is_found_at_once(story: Story) -> None:
    key = "agent:main:called-later"
    story.log.append_now([opened(key, 1_000)])
    story.put(
        f"session:{key}",
        RouteChanged(route=Route(channel="telegram", to="7"), display_name="Boiler room"),
        time=1_000,
    )

    assert named(story.log, "boiler") == [key]


class Asking:
    """A log that takes down what is asked of it at a moment, without the values."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    @contextmanager
    def moment(self) -> Generator[Moment]:
        with self._log.moment() as there:

            def ask(statement: str, parameters: Sequence[SqlValue]) -> list[Row]:
                self.asked.append(statement)
                return there.query(statement, parameters)

            yield Moment(ask)


@pytest.mark.clause("VIS-6", "X2")
@pytest.mark.parametrize(
    ("field", "there", "absent"),
    [("label", "desk", "disk"), ("parent", "agent:ops:main", "agent:ops:mien")],
)
def test_what_is_not_seen_is_looked_for_no_longer_than_what_is_not_there(
    story: Story, field: str, there: str, absent: str
) -> None:
    """Before: a label that somebody had, or a parent that there was, took twice the time of one that is none."""
    story.open("agent:ops:main", session_id="ops", label="desk")
    story.open("agent:ops:child", session_id="child", spawned_by="agent:ops:main", label="child")
    story.open("agent:main:main", session_id="main")
    seen = VisibleSessions(lambda agent: agent == "main", "agent:main:main")
    asked: list[list[str]] = []
    for value in (there, absent):
        log = Asking(story.log)
        order = Sessions(log).order(wanted=SessionFilter(seen=seen)._replace(**{field: value}))  # type: ignore[arg-type]
        assert list(order.rows(order.places())) == []
        asked.append(log.asked)
    assert asked[0] == asked[1] != []
