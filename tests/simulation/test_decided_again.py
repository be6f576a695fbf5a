"""What simulated flows recorded is decided again from their decision records alone, and by other rules it is not."""

import logging
from collections import Counter
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import msgspec
import pytest

from intersession_actors.delivery import rules as delivery_rules
from intersession_actors.exchange import rules as exchange_rules
from intersession_actors.policy import chain
from intersession_actors.replaying import Sources, redecided, redecided_all
from intersession_actors.session import rules as session_rules
from intersession_actors.spawn import rules as spawn_rules
from intersession_actors.streams import record_in
from intersession_events.facts import words
from intersession_events.log import Recorded
from simulation.bugs import BUGS
from simulation.seed import Kept, recorded_in, simulate
from support.every_day import every_day
from support.rewritten import rewritten

# What a process had begun to await when it crashed, nobody awaits.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")

SEEDS = 12
SOME = (53, 98, 964, 4063, 20401, 1100000421, 1200000115, 1500002236)
"""Seeds in which much went wrong."""

OTHERWISE = {
    "a turn more": (5, exchange_rules, "state.turn >= settings.max_turns", "state.turn > settings.max_turns"),
    "an absent agent is asked": (35, exchange_rules, "if not now.requester_has_agent:", "if False:"),
    "a chain may last": (36, chain, "used < allowed", 'name == "wallSeconds" or used < allowed'),
    "a chain may have runs": (22, chain, "used < allowed", 'name == "runs" or used < allowed'),
    "what is denied goes out": (6, delivery_rules, "if not verdict.allowed:", "if False:"),
    "what was cut off is never tried again": (13, delivery_rules, "if idempotent:", "if False:"),
    "a child that broke is asked again": (
        12,
        spawn_rules,
        'if outcome.status != "ok" or asked.run_id in now.refused:',
        "if asked.run_id in now.refused:",
    ),
    "an attempt that was cut off is made once more": (
        2,
        session_rules,
        "running.attempt - running.waiting.refused <= now.retries",
        "running.attempt - running.waiting.refused < now.retries",
    ),
    "a run may last longer": (
        0,
        session_rules,
        "now_ms + queued.timeout_ms",
        "now_ms + queued.timeout_ms + 1",
    ),
    "nobody hears of a failure": (
        4,
        session_rules,
        "return _of_the_run(state, decided, notice)",
        "return _of_the_run(state, decided)",
    ),
    "a run starts that its chain can't pay": (105, session_rules, "if tripped is not None:", "if False:"),
}
"""Rules that say something else: a seed that shows it, where the rule is, what it says, and what it would say."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Let nobody format what agents that fail make the system say."""
    caplog.set_level(logging.CRITICAL)


@cache
def log_of(seed: int) -> Kept:
    """Return the log of a seed, which is the same each time."""
    return recorded_in(seed)


def differing(kept: Kept) -> list[str]:
    return [
        f"{one.append[0].stream} version {one.append[0].version}: {one.problem or one.now}"
        for one in redecided_all(Sources(*kept))
        if not one.is_same
    ]


@pytest.mark.clause("C7", "SEAL-1")
@pytest.mark.parametrize("seed", every_day([*range(SEEDS), *SOME], 0, 1, 2, 4063))
def test_each_append_is_decided_again_from_its_record_alone(seed: int) -> None:
    kept = log_of(seed)

    assert differing(kept) == []
    owned = ("session:", "exchange:", "spawn:", "delivery:")
    recorded = [one for one in kept[1] if one.stream.startswith((*owned, "access:")) and one.decision]
    assert len([*redecided_all(Sources(*kept))]) == len(recorded)


@pytest.mark.clause("C7", "SEAL-2")
@pytest.mark.parametrize(
    ("seed", "module", "rule", "now"),
    every_day(
        OTHERWISE,
        "a turn more",
        "an absent agent is asked",
        "what was cut off is never tried again",
        "a child that broke is asked again",
    ),
)
def test_a_rule_that_is_another_decides_otherwise(seed: int, module: ModuleType, rule: str, now: str) -> None:
    kept = log_of(seed)

    with rewritten(module, rule, now):
        assert differing(kept) != []


DOCTORED = {
    0: {
        *("DeliveryReturned with attempt", "DeliveryReturned with receipt", "ReleaseExchange knew hasRoute"),
        *("ReleaseExchange knew heldMs", "ReleaseExchange with action", "ReleaseExchange with by"),
        *("RunEnded knew wallMs", "SendChecked with rule"),
        *("RunReturned knew nowMs", "StartNext knew nowMs", "Wake knew retries"),
    },
    1: {"Enqueue knew nowMs", "RunEnded knew age", "RunEnded knew refused"},
    3: {"HoldExchange with before", "HoldExchange with by", "Prepared with manifestSha256"},
    4: {
        *("DeliveryReturned knew nowMs", "DeliveryReturned with error", "DeliveryReturned with retry"),
        *("RunEnded knew hasRoute", "SendChecked with after"),
    },
    5: {"DeliveryReturned with inDoubt"},
    6: {"SendChecked with denied"},
    7: {"TooOld knew cutOff", "TooOld knew tooOldS"},
    9: {"Wake knew failureText"},
    22: {"OpenExchange knew spent", "RunEnded knew spent"},
    85: {"Enqueue knew threadLeft", "Unbind knew threadLeft", "Wake knew ageMs"},
    105: {"StartNext knew spent"},
}
"""What a record can say otherwise, by its command, and a seed in which each is seen."""


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + 1_000_000
        case str():
            return f"{value}x"
        case _:
            return type(value)()


def _doctored(events: list[Recorded]) -> Iterator[tuple[str, str, list[Recorded]]]:
    """Yield what is doctored, in which stream, and the events with one field of one record that says something else."""
    for number, event in enumerate(events):
        record: dict[str, Any] = msgspec.json.decode(event.decision) if event.decision else {}
        for part in ("knew", "with"):
            for name, value in record.get(part, {}).items():
                changed = {**record, part: {**record[part], name: _other(value)}}
                decision = msgspec.json.encode(changed, order="sorted").decode()
                doctored = msgspec.structs.replace(event, decision=decision)
                yield (
                    f"{record['asked']} {part} {name}",
                    event.stream,
                    [*events[:number], doctored, *events[number + 1 :]],
                )


@pytest.mark.clause("C7")
@pytest.mark.parametrize(
    ("seed", "names"), every_day({str(seed): (seed, names) for seed, names in DOCTORED.items()}, 0, 1)
)
def test_records_that_were_doctored_are_not_decided_as_they_were(seed: int, names: set[str]) -> None:
    log_id, events = log_of(seed)
    seen = {
        name
        for name, stream, doctored in _doctored(events)
        if name in names and not all(one.is_same for one in redecided(Sources(log_id, doctored), stream))
    }

    assert seen == names


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


@pytest.mark.clause("C7")
@pytest.mark.parametrize("seeds", every_day([3, SEEDS], 3))
def test_most_records_are_small(seeds: int) -> None:
    sizes = Counter(
        len(event.decision) <= 80
        for seed in range(seeds)
        for event in log_of(seed)[1]
        if record_in(event.decision or '{"asked":"-"}').asked in {"RunEnded", "DeliveryEnded"}
    )
    assert sizes[True] > 2 * sizes[False]


@pytest.mark.clause("C2", "C8")
@pytest.mark.parametrize(
    ("bug", "seed"),
    every_day(
        {
            "a chain": ("forgets_what_a_chain_has_used", 20),
            "an end": ("hears_of_no_end_of_a_session", 1),
            "a start": ("a_start_looks_at_no_chain", 22),
            "attempts": ("an_attempt_is_made_once", 0),
            "a failure": ("nobody_is_to_hear_of_a_failure", 0),
            "a clock": ("a_session_reads_another_clock", 0),
        },
        "an end",
        "a clock",
    ),
)
def test_a_decision_that_is_told_less_than_there_is_is_seen_by_its_record(bug: str, seed: int) -> None:
    with BUGS[bug]():
        assert "known_as_it_was" in {finding.law for finding in simulate(seed).findings}


@pytest.mark.clause("C2", "C7")
def test_a_record_that_says_less_than_was_known_is_not_decided_as_it_was() -> None:
    for bug in ("records_what_it_did_not_know", "records_no_time_of_a_session"):
        with BUGS[bug]():
            assert differing(recorded_in(0)) != []


@pytest.mark.clause("C2", "C8")
@pytest.mark.parametrize(
    ("bug", "seed"),
    every_day(
        {
            "lineage": ("sees_no_lineage", 17),
            "sub-agents": ("does_not_count_sub_agents", 4),
            "settings": ("hears_of_no_setting_of_a_session", 6),
            "another judgement": ("records_another_judgement", 1),
        },
        "sub-agents",
        "another judgement",
    ),
)
def test_a_door_that_is_told_less_than_there_is_is_seen_by_its_record(bug: str, seed: int) -> None:
    with BUGS[bug]():
        assert "judged_as_it_was" in {finding.law for finding in simulate(seed).findings}
