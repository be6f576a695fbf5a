"""What simulated flows recorded is decided again from their decision records alone, and by other rules it is not."""

import logging
from collections import Counter

import pytest

from intersession_actors.hindsight.replaying.redeciding.deciding_again import redecided_all
from intersession_actors.hindsight.replaying.redeciding.sources import Sources
from intersession_actors.owners.streams.records import record_in
from intersession_events.facts import words
from simulation.otherwise import RECORDS, differing, log_of
from simulation.shown import is_shown
from support.every_day import every_day

# What a process had begun to await when it crashed, nobody awaits.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")

SEEDS = 12
SOME = (53, 98, 964, 4063, 20401, 1100000421, 1200000115, 1500002236)
"""Seeds in which much went wrong."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Let nobody format what agents that fail make the system say."""
    caplog.set_level(logging.CRITICAL)


@pytest.mark.clause("C7", "SEAL-1")
@pytest.mark.parametrize("seed", every_day([*range(SEEDS), *SOME], 0, 1, 2, 4063))
def test_each_append_is_decided_again_from_its_record_alone(seed: int) -> None:
    kept = log_of(seed)

    assert differing(kept) == []
    owned = ("session:", "exchange:", "spawn:", "delivery:")
    recorded = [one for one in kept[1] if one.stream.startswith((*owned, "access:")) and one.decision]
    assert len([*redecided_all(Sources(*kept))]) == len(recorded)


@pytest.mark.clause("C7")
@pytest.mark.parametrize(
    "name", every_day(RECORDS, "StartNext knew nowMs", "RunEnded knew wallMs", "SendChecked with rule")
)
def test_a_record_that_was_doctored_is_not_decided_as_it_was(name: str) -> None:
    assert is_shown("record", name)


@pytest.mark.clause("C7")
@pytest.mark.parametrize("seeds", every_day([3, SEEDS], 3))
def test_no_record_holds_words(seeds: int) -> None:
    for seed in range(seeds):
        events = log_of(seed)[1]
        records = "\n".join(event.decision for event in events)
        said = {text for event in events for text in words(event.event) if len(text) > 8}
        assert said
        # The arguments of a call may be the very fields that were judged; what they hold is no words then.
        assert [text for text in said if text in records and text[0] != "{"] == []


@pytest.mark.ci
@pytest.mark.clause("C7")
@pytest.mark.parametrize("seeds", every_day([8, SEEDS], 8))
def test_most_records_are_small(seeds: int) -> None:
    sizes = Counter(
        len(event.decision) <= 80
        for seed in range(seeds)
        for event in log_of(seed)[1]
        if record_in(event.decision or '{"asked":"-"}').asked in {"RunEnded", "DeliveryEnded"}
    )
    assert sizes[True] > 2 * sizes[False]
