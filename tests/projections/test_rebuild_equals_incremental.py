"""Any view can be dropped and rebuilt to the same bytes, at any point of any log."""

from typing import Any

import pytest
from hypothesis import given, settings

from intersession_events.facts import Event
from intersession_events.log.views import take_in
from intersession_events.stores.folding.fold import PlainSql
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.sessions.list import Sessions
from support.plain_log import PlainLog
from support.story import listed
from support.vocabulary import logs

Entry = tuple[str, Event, int]


def rebuilt(log: PlainLog) -> dict[str, list[tuple[Any, ...]]]:
    sql = PlainSql(log.connection)
    for view in inline_views():
        view.drop(sql)
        view.create(sql)
        take_in(view, sql, log.events)
    return log.dump()


def check_every_prefix(entries: list[Entry]) -> None:
    log = PlainLog(inline_views())
    for stream, event, time in entries:
        log.put(stream, event, time=time, correlation="root")
        grown = log.dump()
        assert rebuilt(log) == grown


@pytest.mark.clause("J1")
@settings(max_examples=20, deadline=None)
@given(logs(max_size=20))
def test_a_rebuilt_view_has_the_same_bytes_as_one_that_grew_at_every_prefix(entries: list[Entry]) -> None:
    check_every_prefix(entries)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.clause("J1")
@settings(max_examples=10_000, deadline=None)
@given(logs())
def test_a_rebuilt_view_has_the_same_bytes_over_ten_thousand_logs(entries: list[Entry]) -> None:
    check_every_prefix(entries)


@pytest.mark.clause("LIST-8")
@settings(max_examples=25, deadline=None)
@given(logs())
def test_the_list_as_of_a_position_is_the_list_that_stood_there(entries: list[Entry]) -> None:
    log = PlainLog(inline_views())
    sessions = Sessions(log)
    stood = [list(listed(sessions))]
    for stream, event, time in entries:
        log.put(stream, event, time=time)
        stood.append(list(listed(sessions)))
    assert [list(listed(sessions, position)) for position in range(len(stood))] == stood


@pytest.mark.ci
@pytest.mark.clause("LIST-3")
@settings(max_examples=25, deadline=None)
@given(logs())
def test_updated_at_never_falls(entries: list[Entry]) -> None:
    log = PlainLog(inline_views())
    sessions = Sessions(log)
    latest: dict[str, int] = {}
    for stream, event, time in entries:
        log.put(stream, event, time=time)
        for row in listed(sessions):
            assert row.updated_at >= latest.get(row.key, 0)
            latest[row.key] = row.updated_at
