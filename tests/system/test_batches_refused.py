"""A batch that one of our own statements refuses shows at once: in the log of the process, in `status`, to the host, in the metrics."""

import logging
import re
from collections.abc import Sequence

import pytest

from intersession import Failure, SessionSystem
from intersession.gateway.metrics import Metrics
from intersession_actors.running.failures.findings import process_findings
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Sql
from intersession_events.stores.opened import open_log
from intersession_projections.views.inline_views import inline_views
from support.hosts_code import parrot
from support.running import WAIT


class Mistaken:
    """Says of each of two events what can be said once."""

    name = "mistaken"
    shape = 1

    def create(self, sql: Sql) -> None:
        sql.execute("CREATE TABLE IF NOT EXISTS mistaken (said TEXT PRIMARY KEY)")

    def drop(self, sql: Sql) -> None:
        sql.execute("DROP TABLE IF EXISTS mistaken")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        sql.execute("DELETE FROM mistaken")
        for _ in events:
            sql.execute("INSERT INTO mistaken VALUES (?)", ("hello",))


def test_a_mistake_of_ours_shows_at_every_place_where_one_looks(
    log_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Failure] = []
    caplog.set_level(logging.WARNING, logger="intersession.store")
    with (
        open_log(log_url, inline=[*inline_views(), Mistaken()]) as log,
        SessionSystem(log, agents={"main": parrot}, on_failure=heard.append) as system,
    ):
        answer = system.inbound(channel="chat", chat_id="1", sender="ann", text="hello", wait=WAIT)
        status = system.status()
        metrics = Metrics(system).text().decode()

    assert answer["status"] == "ok"  # it is slow, and nothing is lost
    counted = status["failures"]["batch_refused"]
    assert counted >= 1
    (refused,) = re.findall(r'intersession_failures_total\{kind="batch_refused"\} (\S+)', metrics)
    assert float(refused) >= counted  # one more may have been refused meanwhile
    assert "batch_refused" in {one.code for one in process_findings(status)}
    (told,) = [one for one in heard if one.kind == "batch_refused"]
    assert told.level == "warning"
    assert told.error is not None
    assert "hello" not in told.error
    assert len([record for record in caplog.records if "a batch was refused" in record.getMessage()]) == 1
