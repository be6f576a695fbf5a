"""How a flow stands in a log that somebody else has written: what does not belong to its stream is passed over."""

from pathlib import Path

import pytest

from intersession_actors.owners.delivery.records import RULES as DELIVERIES
from intersession_actors.owners.exchange.records import RULES as EXCHANGES
from intersession_actors.owners.spawn.records import RULES as SPAWNS
from intersession_events.facts import TurnRequested
from intersession_events.stores.sqlite.log import SqliteLog
from support.log_drafts import draft, said, to


@pytest.mark.clause("PLACE-4")
def test_a_stream_that_begins_in_the_middle_has_no_state(tmp_path: Path) -> None:
    turn = TurnRequested(turn=1, speaker="agent:main:main", run_id="r", message_id="m")
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("exchange:x", 0, draft(turn, "a"), said("b"))])
        found = list(log.stream("exchange:x"))

    assert len(found) == 2
    assert [rules.state_in(found) for rules in (EXCHANGES, SPAWNS, DELIVERIES)] == [None, None, None]
