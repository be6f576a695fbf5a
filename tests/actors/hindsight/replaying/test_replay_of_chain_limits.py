"""Sealed replay of what a guard over a causal chain had looked at, while other branches of the chain ended (SEAL, LOOP-5)."""

import logging
from pathlib import Path

import pytest
from msgspec import structs

from intersession_actors.hindsight.debugger.opened import open_log
from intersession_actors.hindsight.replaying.replayed import replay_events
from intersession_actors.rules.policy import chain
from intersession_events import facts
from intersession_events.log.recorded import parts_in
from support.branching_chain import LIMITS, branches
from support.every_day import every_day
from support.rewritten import rewritten


def differences(file: Path) -> list[str]:
    """Return what is decided otherwise in the whole log, and in each of its runs."""
    with open_log(file) as log:
        asked = [item.event.run_id for item in log.log.all() if isinstance(item.event, facts.RunQueued)]
        found = [log.debug.replay(), *(log.debug.replay(run) for run in asked)]
    return [one["firstDifference"]["text"] for one in found if one["firstDifference"] is not None]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.clause("SEAL-1", "SEAL-2", "LOOP-5")
@pytest.mark.parametrize("tool", ["sessions_send", "sessions_spawn"])
@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("seed", every_day([0, 5, 11], 0))
def test_a_guard_is_decided_on_by_what_it_had_looked_at(
    tmp_path: Path, limits: dict[str, int], tool: str, seed: int
) -> None:
    file = tmp_path / "log.db"
    tripped = [
        item
        for item in parts_in(branches(file, seed, limits, tool)[1])
        if getattr(item.event, "limit", None) or getattr(item.event, "code", None) == "limit"
    ]

    assert tripped
    assert differences(file) == []


@pytest.mark.clause("SEAL-2", "LOOP-5")
@pytest.mark.parametrize("limits", [{"tokens": 5}, {"costMicros": 5}, {"runs": 9}])
def test_a_guard_that_lets_more_runs_happen_is_told(tmp_path: Path, limits: dict[str, int]) -> None:
    file = tmp_path / "log.db"
    branches(file, 0, limits)

    # Three of its branches end at about the same time, in which order the seed says; each uses all that the chain may.
    with rewritten(chain, "used < allowed", "used <= 3 * allowed"):
        assert differences(file) != []


@pytest.mark.clause("SEAL-2", "LOOP-5")
def test_a_number_that_the_chain_never_came_to_is_told(tmp_path: Path) -> None:
    log_id, recorded = branches(tmp_path / "log.db", 0, {"tokens": 5})
    failed = next(item for item in recorded if isinstance(item.event, facts.RunFailed))
    assert isinstance(failed.event, facts.RunFailed)
    words = failed.event.error.replace("has used ", "has used 9")
    other = structs.replace(failed, event=structs.replace(failed.event, error=words))

    assert replay_events(log_id, recorded)["same"]
    assert not replay_events(log_id, [other if item is failed else item for item in recorded])["same"]
