"""Ends by a guard over a causal chain are explained by what was looked at, though other branches ended meanwhile (WHY, LOOP-5)."""

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from intersession_actors.hindsight.debugger.opened import open_log
from intersession_events import facts
from support.branching_chain import LIMITS, branches
from support.every_day import every_day

SETTINGS = [f"session.agentToAgent.limits.{name}" for name in ("runs", "tokens", "costMicros")]


@pytest.mark.clause("WHY-2", "LOOP-5")
@pytest.mark.parametrize("tool", ["sessions_send", "sessions_spawn"])
@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("seed", every_day([0, 1], 0))
def test_what_a_guard_ended_is_explained_by_the_number_that_it_had_looked_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, limits: dict[str, int], tool: str, seed: int
) -> None:
    caplog.set_level(logging.CRITICAL)
    branches(tmp_path / "log.db", seed, limits, tool)

    with open_log(tmp_path / "log.db") as log:
        for recorded in log.log.all():
            event = recorded.event
            if isinstance(event, facts.RunFailed):
                _is_explained_by_its_record(log.debug.why(recorded.position)["explanations"][0], event)
            if not isinstance(event, facts.LoopEnded | facts.AnnounceDecided | facts.ExchangeClosed):
                continue
            found = log.debug.why(recorded.position)["explanations"]
            explained = next(one for one in found if one["position"] == recorded.position)
            assert explained["asDecided"] is True, explained["text"]
            if isinstance(event, facts.LoopEnded | facts.ExchangeClosed) and event.limit in SETTINGS:
                used = [one["value"] for one in explained["inputs"] if one["name"] == f"{event.limit}.used"]
                assert str(used[0]) in re.findall(r"\d+", event.note or "")


def _is_explained_by_its_record(explained: Mapping[str, Any], failed: facts.RunFailed) -> None:
    """Hold a run that did not start to what it is explained by: the one limit that kept it, and what would have let it start."""
    inputs = {one["name"]: one["value"] for one in explained["inputs"]}
    (other,) = explained["instead"]

    assert (explained["code"], explained["asDecided"]) == ("limit", True)
    assert inputs[f"{failed.limit}.used"] == failed.used
    assert (other["setting"], other["verdict"]) == (failed.limit, "run_started")
    assert other["value"] == (failed.used or 0) + 1
