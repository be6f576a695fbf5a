"""The order of events inside one append, and the times that a log records."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.log.recorded import Draft, StreamAppend
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.sqlite.log import SqliteLog
from support.log_drafts import anywhere, said, to


def caused(name: str, by: str | None, *, time: int = 1_000, is_dated: bool = False) -> Draft:
    cause = None if by is None else f"id-{by}"
    return msgspec.structs.replace(said(name), causation=cause, time=time, is_dated=is_dated)


@pytest.mark.clause("O1")
def test_no_event_stands_before_its_cause_in_one_append() -> None:
    """B16: `#19 <- #21`, a message before the step of the exchange that led to it."""
    batch = [
        to(
            "session:b", 0, caused("opened", None), caused("message", "accepted"), caused("queued", "message")
        ),
        to("exchange:x", 0, caused("accepted", None)),
    ]
    with SqliteLog(":memory:") as log:
        first = log.append_now(batch)

        assert [event.id for event in log.all()] == ["id-opened", "id-accepted", "id-message", "id-queued"]
        assert first.recorded == tuple(log.all())
        again = log.append_now(batch)
        assert (again.again, again.recorded) == (True, first.recorded)


@pytest.mark.clause("O1")
def test_events_that_are_said_to_have_caused_each_other_are_kept_as_they_come() -> None:
    with SqliteLog(":memory:") as log:
        log.append_now(
            [to("s", 0, caused("a", "d"), caused("b", None)), to("t", 0, caused("c", "b"), caused("d", "a"))]
        )

        assert [event.id for event in log.all()] == ["id-a", "id-b", "id-c", "id-d"]


@st.composite
def appends(draw: st.DrawFn) -> list[StreamAppend]:
    streams = draw(st.lists(st.sampled_from(["s", "t", "u"]), min_size=1, max_size=6))
    names = iter("abcdefghijklmnopqrstuvwx")
    batch: list[StreamAppend] = []
    every = [f"{name}" for name in "abcdefghijklmnopqrstuvwx"]
    for stream in streams:
        drafts = [
            caused(next(names), draw(st.none() | st.sampled_from(every)), time=draw(st.integers(0, 50)))
            for _ in range(draw(st.integers(1, 3)))
        ]
        known = sum(len(part.drafts) for part in batch if part.stream == stream)
        batch.append(to(stream, known, *drafts))
    return batch


@pytest.mark.clause("O1")
@given(appends())
def test_whatever_is_appended_keeps_its_streams_and_has_its_causes_before_it(
    batch: list[StreamAppend],
) -> None:
    with SqliteLog(":memory:") as log:
        log.append_now(batch)
        events = list(log.all())
        for stream in {part.stream for part in batch}:
            given_ids = [draft.id for part in batch if part.stream == stream for draft in part.drafts]
            assert [event.id for event in log.stream(stream)] == given_ids
        places = {event.id: place for place, event in enumerate(events)}
        if any(places.get(event.causation or "", -1) > places[event.id] for event in events):
            # Only where streams and causes can't be put in one order at all.
            assert not is_orderable(batch)
        assert [event.time for event in events] == sorted(event.time for event in events)
        assert log.append_now(batch).recorded == tuple(events)
        assert verify_log(log).ok


def is_orderable(batch: list[StreamAppend]) -> bool:
    """Say whether some order has each event behind its cause and behind its stream."""
    needs: dict[str, set[str]] = {}
    last: dict[str, str] = {}
    for part in batch:
        for draft in part.drafts:
            needs[draft.id] = {last[part.stream]} if part.stream in last else set()
            needs[draft.id] |= {draft.causation} if draft.causation is not None else set()
            last[part.stream] = draft.id
    placed: set[str] = set()
    while ready := [
        each for each in needs if each not in placed and not (needs[each] & needs.keys()) - placed
    ]:
        placed.update(ready)
    return len(placed) == len(needs)


@pytest.mark.clause("O5")
def test_an_append_that_version_0_1_0_recorded_is_found_again_in_its_order() -> None:
    effect, cause = caused("effect", "cause"), caused("cause", None)
    with SqliteLog(":memory:") as log:
        log.append_now([to("s", 0, effect)])
        log.append_now([anywhere("log", cause)])

        again = log.append_now([to("s", 0, effect), anywhere("log", cause)])

        assert (again.again, [event.id for event in again.recorded]) == (True, ["id-effect", "id-cause"])


@pytest.mark.clause("L8")
def test_recorded_times_never_fall_and_what_is_imported_keeps_its_own(tmp_path: Path) -> None:
    """B16: times went back by a millisecond, and by an hour with the clock."""
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("s", 0, caused("a", None, time=5_000))])
        log.append_now([to("t", 0, caused("b", None, time=4_999)), to("s", 1, caused("c", None, time=5_001))])
        log.append_now([to("i", 0, caused("d", None, time=7, is_dated=True))])
        log.append_now([to("s", 2, caused("e", None, time=10))])
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("s", 3, caused("f", None, time=20), caused("g", None, time=6_000))])

        assert [event.time for event in log.all()] == [5_000, 5_000, 5_001, 7, 5_001, 5_001, 6_000]
        assert verify_log(log).ok
