"""The head of a log is never behind what anybody has read, at whatever moment somebody reads."""

import pytest

from intersession_events.basics.crash_points import arm
from intersession_events.facts import ExchangeAccepted
from intersession_events.stores.opened import open_log
from support.log_drafts import anywhere, draft, said, to
from support.postgres.network import network
from support.postgres.server import Server

_LAST = "SELECT MAX(rowid) FROM stored_events"
COMMITTED = "S2"
"""Passed once a commit is durable, before its writer has heard of it."""


def accepted(name: str) -> ExchangeAccepted:
    return ExchangeAccepted(
        exchange_id=name, run_id=name, target="t", target_session_id="s", message_id=name, message="hello"
    )


def test_the_head_is_not_behind_what_is_read_before_the_writer_has_heard_of_its_commit(log_url: str) -> None:
    seen: list[tuple[int, int]] = []
    with open_log(log_url, threads=False) as log:
        disarm = arm(
            lambda point: seen.append((log.query(_LAST)[0][0], log.head())) if point == COMMITTED else None
        )
        try:
            for name in ("x", "y"):
                log.append_now(
                    [to(f"exchange:{name}", 0, draft(accepted(name), name)), anywhere("s", said(name))]
                )
        finally:
            disarm()

        assert seen == [(2, 2), (4, 4)]
        assert log.head() == 4


@pytest.mark.postgres
def test_while_nobody_can_read_the_head_is_what_the_writer_has_heard_of(
    postgres: Server, postgres_url: str
) -> None:
    schema = postgres_url.partition("schema=")[2].partition("&")[0]
    seen: list[int] = []
    with network(postgres.directory) as between, open_log(between.url(schema), threads=False) as log:

        def away(point: str) -> None:
            if point == COMMITTED:
                between.to = postgres.directory / "gone"
                between.cut()
                seen.append(log.head())

        disarm = arm(away)
        try:
            log.append_now([to("exchange:x", 0, draft(accepted("x"), "x"))])
        finally:
            disarm()
        between.to = postgres.directory

        assert seen == [0]
        assert log.head() == 1
