"""Forks of imported runs: read as far as they were recorded, said so in words, and open to what comes next (FORK-10, IMP-4)."""

from pathlib import Path

import pytest

from intersession import SessionSystem, ToolRefused, echo
from intersession_events.facts import ForkEdit
from intersession_projections.flows import Position
from support.golden_logs import golden_logs
from support.running import SEES_ALL


@pytest.mark.clause("FORK-10", "IMP-4")
def test_a_fork_of_an_imported_run_ends_where_the_import_knows_no_more_and_answers_what_is_sent_there(
    tmp_path: Path,
) -> None:
    (golden,) = [one for one in golden_logs() if one.name == "restricted"]
    with SessionSystem(golden.unpack(tmp_path), agents={"main": echo()}, config=SEES_ALL) as system:
        flows = system.service.flows
        exchange = next(one for one in flows.exchanges_at(Position(0, system.log.head()), 50) if one.turns)
        assert exchange.inferred
        for place in (exchange.accepted, "reply", "turn:1"):
            with system.fork(exchange.exchange_id, at=place, agents={"*": echo()}) as fork:
                carried = fork.carried_on()
                assert (carried.state, carried.imported) == ("imported", (exchange.stream,))
        with system.fork(exchange.exchange_id, at="end", agents={"*": echo()}) as fork:
            assert fork.carried_on().state == "ended"
            asked = {"sessionKey": exchange.target, "message": "and now?", "timeoutSeconds": 20}
            assert "and now?" in str(fork.tools().call("sessions_send", asked)["reply"])
        for kind in ("reply", "skip", "message"):
            with pytest.raises(
                ToolRefused, match="was imported, and an import has what was said, but not the runs"
            ):
                system.fork(exchange.exchange_id, at="turn:1", edits=[ForkEdit(kind=kind, value="x")])
