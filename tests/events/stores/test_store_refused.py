"""A batch that one of our own statements refuses is written piece by piece, and that is said: else nobody sees why it is slow."""

import logging
from collections.abc import Sequence

import pytest

from intersession_events.log.recorded import Committed, Outcome, Recorded
from intersession_events.log.sql import Sql
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.committing import RefusedBatch
from support.log_drafts import anywhere, said, to

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


class Mistaken:
    """Takes in one event at a time; of two it says a thing twice that can be said once."""

    name = "mistaken"
    shape = 1

    def __init__(self, raises: type[Exception] | None = None) -> None:
        self._raises = raises

    def create(self, sql: Sql) -> None:
        sql.execute("CREATE TABLE IF NOT EXISTS mistaken (said TEXT PRIMARY KEY)")

    def drop(self, sql: Sql) -> None:
        sql.execute("DROP TABLE IF EXISTS mistaken")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        if self._raises is not None and len(events) > 1:
            raise self._raises(SECRET)
        sql.execute("DELETE FROM mistaken")
        for _ in events:
            sql.execute("INSERT INTO mistaken VALUES (?)", (SECRET,))


def written(url: str, view: Mistaken, *, batches: int, heard: list[RefusedBatch] | None = None) -> None:
    with open_log(url, inline=[view], threads=False) as log:
        if heard is not None:
            log.on_refused(heard.append)
        told: list[Outcome] = []
        for batch in range(batches):
            for piece in range(2):
                log.append([anywhere(f"s-{piece}", said(f"{batch}-{piece}"))], told.append)
            log.step()
        assert len(told) == 2 * batches
        assert all(isinstance(one, Committed) for one in told)
        assert not log.set_aside()


def test_a_refused_batch_is_told_with_its_statement_and_without_data(log_url: str) -> None:
    heard: list[RefusedBatch] = []

    written(log_url, Mistaken(), batches=2, heard=heard)

    assert len(heard) == 2
    assert heard[0] == heard[1]
    assert heard[0].pieces == 2
    assert SECRET not in heard[0].error
    if log_url.startswith("postgresql"):
        assert heard[0].error == (
            "23505 UniqueViolation: mistaken.mistaken_pkey: in INSERT INTO mistaken VALUES (%s)"
        )
    else:
        assert heard[0].error == "SQLITE_CONSTRAINT_PRIMARYKEY"


def test_what_a_view_raises_is_told_by_its_kind_and_line_alone(log_url: str) -> None:
    heard: list[RefusedBatch] = []

    written(log_url, Mistaken(raises=KeyError), batches=1, heard=heard)

    (refused,) = heard
    assert refused.error.startswith("KeyError in test_store_refused.py:")
    assert SECRET not in refused.error


def test_without_a_listener_the_log_of_the_process_says_it_once(
    log_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="intersession.store"):
        written(log_url, Mistaken(), batches=3)

    (line,) = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert "a batch of 2 was refused and is written one by one" in line
    assert SECRET not in caplog.text


def test_an_append_that_is_refused_for_what_it_says_is_no_refused_batch(log_url: str) -> None:
    heard: list[RefusedBatch] = []
    with open_log(log_url, threads=False) as log:
        log.on_refused(heard.append)
        told: list[Outcome] = []
        log.append([anywhere("s", said("1"))], told.append)
        log.append([to("s", 7, said("2"))], told.append)
        log.step()

    assert [type(one).__name__ for one in told] == ["Committed", "Conflict"]
    assert heard == []
