"""What a simulated system recorded, whatever went wrong round it, is decided again by the same rules, and not by others."""

import logging
import re
import subprocess
import sys
from types import ModuleType

import pytest

from intersession_actors.delivery import rules as delivery_rules
from intersession_actors.exchange import holds as hold_rules
from intersession_actors.exchange import rules as exchange_rules
from intersession_actors.policy import chain
from intersession_actors.session import rules as session_rules
from intersession_actors.spawn import rules as spawn_rules
from intersession_events.facts import ExchangeClosed, SpawnClosed
from intersession_events.log import parts_in
from simulation.bugs import BUGS
from simulation.seed import recorded_in
from support.every_day import every_day
from support.history import check_sealed
from support.paths import ROOT
from support.rewritten import rewritten

# What a process had begun to await when it crashed, nobody awaits.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")

KEPT = (
    *(53, 98, 964, 3084, 3088, 3352, 4063, 4271, 4720, 10094, 10355, 11597, 20401, 20636, 20729),
    *(1100000421, 1100002178, 1100004328, 1100004603, 1100004784, 1100006013, 1100007076, 1100007180),
    *(1200000115, 1200000398, 1200006114, 1200006162, 1200006326, 1200006595, 1500002236, 1500002827),
    *(2391, 1800006936),
)
"""Seeds whose logs were called different once, though no rule was another. They stay; the first seeds are in `test_simulation.py`."""
EVERY_NIGHT = 10_000

OTHERWISE = {
    "a turn more": (5, exchange_rules, "state.turn >= settings.max_turns", "state.turn > settings.max_turns"),
    "an absent agent is asked": (35, exchange_rules, "if not now.requester_has_agent:", "if False:"),
    "another id": (
        70,
        exchange_rules,
        'ids.derive(now.log_id, "run", accepted.exchange_id, "turn", turn)',
        'ids.derive(now.log_id, "run", accepted.exchange_id, "turned", turn)',
    ),
    "a chain may last": (36, chain, "used < allowed", 'name == "wallSeconds" or used < allowed'),
    "a chain may have runs": (22, chain, "used < allowed", 'name == "runs" or used < allowed'),
    "what is denied goes out": (6, delivery_rules, "if not verdict.allowed:", "if False:"),
    "what was cut off is never tried again": (13, delivery_rules, "if idempotent:", "if False:"),
    "what was cut off is tried once less": (
        0,
        session_rules,
        "running.attempt - running.waiting.refused <= now.retries:",
        "running.attempt - running.waiting.refused < now.retries:",
    ),
    "twice the pause before another attempt": (
        6,
        delivery_rules,
        "FIRST_RETRY_MS: Final = 1_000",
        "FIRST_RETRY_MS: Final = 2_000",
    ),
    "a child that broke is asked again": (
        12,
        spawn_rules,
        'if outcome.status != "ok" or asked.run_id in now.refused:',
        "if asked.run_id in now.refused:",
    ),
    "what is held before the announce is held before replies": (
        0,
        hold_rules,
        'order.before in {"next", step}',
        'order.before in {"next", "announce", step}',
    ),
    "what is held once is held twice": (
        70,
        hold_rules,
        'order.before in {"next", step} and order.order not in served',
        'order.before in {"next", step}',
    ),
    "twice the time": (
        0,
        session_rules,
        "now_ms + queued.timeout_ms if",
        "now_ms + 2 * queued.timeout_ms if",
    ),
}
"""Rules that say something else: a seed that shows it, where the rule is, what it says, and what it would say."""

PLANTED = {"a6_turns_come_to_whoever_has_the_key": 0, "skips_by_substring": 542}
"""The planted faults that decide something else, each with a seed that shows it."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Let nobody format what agents that fail make the system say."""
    caplog.set_level(logging.CRITICAL)


@pytest.mark.clause("SEAL-1", "SEAL-2", "C5")
@pytest.mark.parametrize("seed", every_day(KEPT, 964, 20401, 1200000115))
def test_what_was_recorded_among_faults_is_decided_as_it_was(seed: int) -> None:
    assert check_sealed(*recorded_in(seed)) == []


@pytest.mark.clause("SEAL-2")
@pytest.mark.parametrize(
    ("seed", "module", "rule", "now"),
    every_day(
        OTHERWISE,
        "another id",
        "a chain may have runs",
        "what is denied goes out",
        "what is held once is held twice",
    ),
)
def test_a_rule_that_is_another_is_seen_in_what_was_recorded_among_faults(
    seed: int, module: ModuleType, rule: str, now: str
) -> None:
    kept = recorded_in(seed)

    assert check_sealed(*kept) == []
    with rewritten(module, rule, now):
        assert check_sealed(*kept) != []


@pytest.mark.clause("SEAL-2", "C2")
@pytest.mark.parametrize(
    ("bug", "seed"),
    every_day({bug: (bug, seed) for bug, seed in PLANTED.items()}, "a6_turns_come_to_whoever_has_the_key"),
)
def test_a_fault_that_was_planted_is_seen_in_what_was_recorded_with_it(bug: str, seed: int) -> None:
    with BUGS[bug]():
        kept = recorded_in(seed)

    assert check_sealed(*kept) != []


@pytest.mark.clause("WHY-1")
def test_what_a_flow_ended_by_is_named_also_where_the_end_of_its_delivery_is_told_again() -> None:
    _, events = recorded_in(11496)

    closed = [item for item in parts_in(events) if isinstance(item.event, ExchangeClosed | SpawnClosed)]
    assert closed
    assert all(item.causation is not None for item in closed)


@pytest.mark.nightly
@pytest.mark.clause("SEAL-1", "SEAL-2", "C5")
@pytest.mark.timeout(7_200)
def test_what_thousands_of_simulated_systems_recorded_is_decided_as_it_was() -> None:
    command_line = [sys.executable, "-m", "tests.simulation", "--jobs", "2", "--sealed", "--no-shrink"]
    told = subprocess.run(
        [*command_line, "--seeds", str(EVERY_NIGHT)], cwd=ROOT, check=False, capture_output=True, text=True
    ).stdout

    assert re.findall(r"^seed \d+: .*", told, re.MULTILINE) == []
    assert f"{EVERY_NIGHT} seeds from 0 on" in told
