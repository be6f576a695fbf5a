"""Guards over causal chains, and cycles of waiting."""

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.policy.chain import (
    Spent,
    check_hop,
    check_run,
    check_start,
    find_wait_cycle,
    one_hop_on,
)
from intersession_events.facts import Budget, Limits

OFF = Limits(hops=0, revisits=0, runs=0, tokens=0, cost_micros=0, wall_seconds=0)


def limits(**given_limits: int) -> Limits:
    return Limits(**{name: given_limits.get(name, 0) for name in OFF.__struct_fields__})


def budget(allowed: Limits = OFF, **fields: Any) -> Budget:
    return Budget(root="r", limits=allowed, **fields)


HOPS: dict[str, tuple[Limits, Budget, Budget]] = {
    "hop_limit": (limits(hops=8), budget(hops=7), budget(hops=8)),
    "revisit_limit": (
        limits(revisits=2),
        budget(path=("b", "a", "b")),
        budget(path=("b", "a", "b", "a", "b")),
    ),
}


@pytest.mark.clause("LOOP-5")
@pytest.mark.parametrize(("limit", "setting"), [("hop_limit", "hops"), ("revisit_limit", "revisits")])
def test_a_limit_of_hops_is_the_most_there_may_be(limit: str, setting: str) -> None:
    allowed, last_that_goes, first_that_trips = HOPS[limit]
    assert check_hop(last_that_goes, allowed, "b") is None

    tripped = check_hop(first_that_trips, allowed, "b")

    assert tripped is not None
    assert (tripped.limit, tripped.setting) == (limit, f"session.agentToAgent.limits.{setting}")


@pytest.mark.clause("LOOP-5")
@pytest.mark.parametrize(
    ("allowed", "last_that_goes", "first_that_trips", "limit", "setting"),
    [
        (limits(runs=3), Spent(runs=2), Spent(runs=3), "run_limit", "runs"),
        (limits(tokens=9), Spent(tokens=8), Spent(tokens=9), "token_limit", "tokens"),
        (limits(cost_micros=5), Spent(cost_micros=4), Spent(cost_micros=6), "cost_limit", "costMicros"),
    ],
)
def test_a_limit_of_runs_is_the_most_there_may_be(
    allowed: Limits, last_that_goes: Spent, first_that_trips: Spent, limit: str, setting: str
) -> None:
    assert check_run(budget(allowed), last_that_goes, 10_000) is None

    tripped = check_run(budget(allowed), first_that_trips, 10_000)

    assert tripped is not None
    assert (tripped.limit, tripped.setting) == (limit, f"session.agentToAgent.limits.{setting}")
    assert tripped.setting in tripped.error_text("task")
    assert str(tripped.value) in tripped.error_text("task")
    # A run that was asked for in time is held back only by what others have used since.
    assert (check_start(budget(allowed), first_that_trips) is None) is (setting == "runs")


@pytest.mark.clause("LOOP-5")
def test_a_chain_is_old_when_its_seconds_are_over() -> None:
    allowed = limits(wall_seconds=2)

    assert check_run(budget(allowed, started_ms=8_001), Spent(), 10_000) is None
    tripped = check_run(budget(allowed, started_ms=8_000), Spent(), 10_000)

    assert tripped is not None
    assert (tripped.limit, tripped.value) == ("wall_limit", 2)


@pytest.mark.clause("LOOP-5")
def test_zero_turns_a_guard_off() -> None:
    used_up = budget(path=("b",) * 99, hops=99, started_ms=1)

    assert check_hop(used_up, OFF, "b") is None
    assert check_run(used_up, Spent(runs=99, tokens=99, cost_micros=99), 10**12) is None


@pytest.mark.clause("LOOP-5")
def test_the_defaults_stop_a_chain_at_its_ninth_hop() -> None:
    chain = budget(Limits(), path=("a",))
    while check_hop(chain, Limits(), "ab"[chain.hops % 2]) is None:
        chain = one_hop_on(chain, "ab"[chain.hops % 2], Limits())

    assert chain.hops == 8


@pytest.mark.clause("LOOP-5")
def test_the_turns_of_an_exchange_are_no_hops_but_they_are_runs() -> None:
    far = budget(Limits(), hops=99, path=("b",) * 99)

    assert check_run(far, Spent(), 0) is None
    assert check_run(far, Spent(runs=64), 0) is not None


@pytest.mark.clause("L8")
def test_a_clock_that_was_set_back_trips_nothing() -> None:
    allowed = limits(wall_seconds=1)

    assert check_run(budget(allowed, started_ms=10_000), Spent(), 0) is None
    assert check_run(budget(allowed, started_ms=0), Spent(), 10**12) is None, "its beginning is not known"


@pytest.mark.clause("SEND-10")
@pytest.mark.parametrize(
    ("waits", "path"),
    [
        ({"A": {"B"}}, ("A", "B", "A")),
        ({"A": {"C"}, "C": {"D"}, "D": {"B"}}, ("A", "C", "D", "B", "A")),
        ({"A": {"X", "B"}, "X": {"B"}}, ("A", "B", "A")),
        ({"A": {"Y", "X"}, "X": {"B"}, "Y": {"B"}}, ("A", "X", "B", "A")),
        ({}, None),
        ({"B": {"A"}}, None),
        ({"A": {"C"}, "C": {"A"}}, None),
    ],
)
def test_waiting_in_a_cycle_is_found_and_its_path_named(
    waits: dict[str, set[str]], path: tuple[str, ...] | None
) -> None:
    assert find_wait_cycle(waits, requester="B", target="A") == path


@pytest.mark.clause("SEND-10")
def test_waiting_for_oneself_is_the_shortest_cycle() -> None:
    assert find_wait_cycle({}, requester="A", target="A") == ("A", "A")


@pytest.mark.clause("SEND-10", "L4")
@given(st.lists(st.tuples(st.sampled_from("ABCDE"), st.sampled_from("ABCDE")), max_size=20))
def test_where_no_wait_that_closes_a_cycle_is_let_in_nobody_waits_for_ever(
    asked: list[tuple[str, str]],
) -> None:
    waits: defaultdict[str, set[str]] = defaultdict(set)
    for requester, target in asked:
        if find_wait_cycle(waits, requester, target) is None:
            waits[requester].add(target)

    # Whoever waits for nobody is free, and then those who wait for free ones only: all are free in the end.
    free: set[str] = set()
    for _ in "ABCDE":
        free |= {who for who in "ABCDE" if waits[who] <= free}
    assert free == set("ABCDE")
