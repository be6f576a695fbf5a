"""An event that no version was expected for is in the log once, however often it is told, on both stores."""

from pathlib import Path

import msgspec
import pytest

from intersession_events.basics.errors import AppendConflict, StoreUnavailable
from intersession_events.basics.ids import event_id, first_event_id
from intersession_events.facts import Erased, encode, topic_of
from intersession_events.log.erasing import erased_stream, left_of
from intersession_events.log.recorded import Committed, Draft, Outcome, StreamAppend, Unavailable
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.portable import recent
from intersession_events.stores.portable.appends import Append
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.sqlite.log import SqliteLog
from support.any_log import AnyLog, Place
from support.faulty_store import FAULT, FAULTY, cut_off
from support.log_drafts import anywhere, draft, said, to
from support.postgres.network import network
from support.postgres.server import Server

A, B, C = (said(name) for name in "abc")


@pytest.mark.clause("O5")
def test_events_that_are_told_again_anywhere_are_what_was_recorded(log: AnyLog) -> None:
    first = log.append_now([anywhere("s", A, B), anywhere("t", C)])
    log.append_now([anywhere("s", said("d"))])

    assert log.append_now([anywhere("s", A, B), anywhere("t", C)]) == Committed(
        recorded=first.recorded, again=True
    )
    assert log.append_now([anywhere("t", C)]).recorded == first.recorded[2:]
    assert log.head() == 4
    assert verify_log(log).ok


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param([anywhere("s", A, C)], id="with-another-event"),
        pytest.param([anywhere("t", A)], id="in-another-stream"),
        pytest.param([to("t", 0, C), anywhere("s", A)], id="beside-another-stream"),
    ],
)
def test_what_is_told_again_otherwise_is_a_conflict(log: AnyLog, batch: list[StreamAppend]) -> None:
    log.append_now([anywhere("s", A)])

    with pytest.raises(AppendConflict):
        log.append_now(batch)

    assert log.head() == 1


def decided(log_id: str, text: str, *, of_payload: bool = False) -> StreamAppend:
    """Return what a session decides as its first event; `of_payload`: as the first logs named it."""
    event = said("x", text).event
    place = (log_id, "session:s", 1, topic_of(event))
    own = first_event_id(*place, encode(event)) if of_payload else event_id(*place)
    return to("session:s", 0, Draft(event=event, id=own, time=5))


@pytest.mark.clause("O5")
@pytest.mark.parametrize("of_payload", [False, True])
def test_a_step_of_the_same_place_is_known_by_what_it_says(log: AnyLog, *, of_payload: bool) -> None:
    first = log.append_now([decided(log.log_id, "yes", of_payload=of_payload)])

    again = log.append_now([decided(log.log_id, "yes")])
    with pytest.raises(AppendConflict):
        log.append_now([decided(log.log_id, "no")])

    assert again == Committed(recorded=first.recorded, again=True)
    assert log.head() == 1
    assert verify_log(log).ok


@pytest.mark.clause("O5", "ERASE-4")
def test_a_step_whose_words_are_erased_is_known_by_what_is_left(log: AnyLog) -> None:
    (first,) = log.append_now([decided(log.log_id, "yes")]).recorded
    rows = ((1, left_of(first) or ""),)
    log.append_now(
        [
            anywhere(
                erased_stream(first.stream), draft(Erased(stream=first.stream, rows=rows, by="operator"), "x")
            )
        ]
    )

    again = log.append_now([decided(log.log_id, "yes")])

    assert (again.again, [one.id for one in again.recorded]) == (True, [first.id])
    assert log.append_now([decided(log.log_id, "no")]).again  # nothing tells them apart any more
    assert verify_log(log).ok


@pytest.mark.clause("O5")
def test_what_is_told_again_before_it_is_written_is_written_once(by_hand: AnyLog) -> None:
    """Who gave up waiting tells it again while it still waits for its turn."""
    told: list[Outcome] = []
    bad = msgspec.structs.replace(C, id="\ud800")
    for batch in ([anywhere("s", A)], [anywhere("s", B, bad)], [anywhere("s", A)], [anywhere("s", B)]):
        by_hand.append(batch, told.append)

    assert by_hand.step()

    assert [type(one) for one in told] == [Committed, Unavailable, Committed, Committed]
    assert [one.again for one in told if isinstance(one, Committed)] == [False, True, False]
    assert [event.id for event in by_hand.all()] == ["id-a", "id-b"]


def test_what_was_told_before_the_log_was_opened_is_known_again(place: Place) -> None:
    with place.open() as log:
        log.append_now([anywhere("s", A)])
    with place.open() as log:
        assert log.append_now([anywhere("s", A)]).again


def told_again_unheard(log: AnyLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Append what gets in, though its answer gets lost and nobody can look whether it did, and tell it again."""

    def unreadable(*_: object) -> bool:
        raise cut_off()

    with monkeypatch.context() as patched:
        patched.setattr(Append, "is_stored", unreadable)
        with pytest.raises(StoreUnavailable):
            log.append_now([anywhere("s", A)])

    assert log.head() == 1  # who reads, reads it
    assert log.append_now([anywhere("s", A)]).again
    assert not log.append_now([anywhere("s", B)]).again
    assert [event.id for event in log.all()] == ["id-a", "id-b"]


@pytest.mark.clause("O5")
def test_what_got_into_a_file_unheard_is_known_when_it_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteLog(tmp_path / "log.db", environment=FAULTY) as log:
        FAULT.after = cut_off()
        told_again_unheard(log, monkeypatch)


@pytest.mark.postgres
@pytest.mark.clause("PG2", "O5")
def test_what_got_into_a_database_unheard_is_known_when_it_is_told_again(
    postgres: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = address_of(postgres_url).schema
    with network(postgres.directory) as between, PostgresLog(between.url(schema)) as log:
        between.cut_instead_of(lambda said: b"COMMIT" in said)
        told_again_unheard(log, monkeypatch)


def test_as_many_ids_are_remembered_as_the_page_of_reliability_says() -> None:
    """Twenty thousand appends take half a minute, so that only the number is looked at, and the next test tries a small one."""
    assert (recent.KNOWN, recent._LAST_EVENTS) == (20_000, 512)


def test_a_bounded_number_of_ids_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "KNOWN", 2)
    with SqliteLog(tmp_path / "log.db") as log:
        for draft in (A, B, C):
            log.append_now([anywhere("s", draft)])
        assert log.append_now([anywhere("s", B)]).again
        assert not log.append_now([anywhere("s", A)]).again
