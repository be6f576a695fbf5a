"""Guards over causal chains, and cycles of waiting."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.policy import ChainSoFar, check_chain, check_turn, find_wait_cycle
from intersession_events.facts import Limits

OFF = Limits(hops=0, revisits=0, runs=0, tokens=0, cost_micros=0, wall_seconds=0)


def limits(**given_limits: int) -> Limits:
    return Limits(**{name: given_limits.get(name, 0) for name in OFF.__struct_fields__})


@pytest.mark.clause("LOOP-5")
@pytest.mark.parametrize(
    ("allowed", "last_that_goes", "first_that_trips", "limit", "setting"),
    [
        (limits(hops=8), ChainSoFar(hops=7), ChainSoFar(hops=8), "hop_limit", "hops"),
        (limits(runs=3), ChainSoFar(runs=2), ChainSoFar(runs=3), "run_limit", "runs"),
        (limits(tokens=9), ChainSoFar(tokens=8), ChainSoFar(tokens=9), "token_limit", "tokens"),
        (
            limits(cost_micros=5),
            ChainSoFar(cost_micros=4),
            ChainSoFar(cost_micros=6),
            "cost_limit",
            "costMicros",
        ),
        (
            limits(wall_seconds=2),
            ChainSoFar(started_ms=8_001),
            ChainSoFar(started_ms=8_000),
            "wall_limit",
            "wallSeconds",
        ),
        (
            limits(revisits=2),
            ChainSoFar(chain=("b", "a", "b")),
            ChainSoFar(chain=("b", "a", "b", "a", "b")),
            "revisit_limit",
            "revisits",
        ),
    ],
)
def test_a_limit_is_the_most_there_may_be(
    allowed: Limits, last_that_goes: ChainSoFar, first_that_trips: ChainSoFar, limit: str, setting: str
) -> None:
    assert check_chain(allowed, last_that_goes, "b", 10_000) is None

    tripped = check_chain(allowed, first_that_trips, "b", 10_000)

    assert tripped is not None
    assert tripped.limit == limit
    assert tripped.setting == f"session.agentToAgent.limits.{setting}"
    assert tripped.setting in tripped.error


@pytest.mark.clause("LOOP-5")
def test_zero_turns_a_guard_off() -> None:
    used_up = ChainSoFar(chain=("b",) * 99, hops=99, runs=99, tokens=99, cost_micros=99, started_ms=0)

    assert check_chain(OFF, used_up, "b", 10**12) is None


@pytest.mark.clause("LOOP-5")
def test_the_defaults_stop_a_chain_at_its_ninth_exchange() -> None:
    chain: tuple[str, ...] = ("a",)
    accepted = 0
    while check_chain(Limits(), ChainSoFar(chain=chain, hops=accepted), "ab"[accepted % 2], 0) is None:
        chain = (*chain, "ab"[accepted % 2])
        accepted += 1

    assert accepted == 8


@pytest.mark.clause("LOOP-5")
def test_the_turns_of_an_exchange_are_no_hops_but_they_are_runs() -> None:
    assert check_turn(Limits(), ChainSoFar(hops=99, chain=("b",) * 99), 0) is None
    assert check_turn(Limits(), ChainSoFar(runs=64), 0) is not None


@pytest.mark.clause("L8")
def test_a_clock_that_was_set_back_trips_nothing() -> None:
    assert check_turn(limits(wall_seconds=1), ChainSoFar(started_ms=10_000), 0) is None
    assert check_turn(limits(wall_seconds=1), ChainSoFar(started_ms=None), 10**12) is None


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
