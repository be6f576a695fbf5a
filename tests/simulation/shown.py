"""Which seed shows what the tests plant: faults, other rules, records that were doctored.

What happens in a seed depends on every step of the system's, so that another seed shows it after many a change. The tests look
into a few others as well; `python -m tests.simulation --find 5000` looks for those that are lost, and writes `shown.txt` anew.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Final

from simulation.bugs import BUGS
from simulation.otherwise import RECORDS, RULES, differing, log_of, seen_of
from simulation.seed import recorded_in, simulate
from support.history import check_sealed
from support.rewritten import rewritten

FILE: Final = Path(__file__).with_name("shown.txt")
OTHERS: Final = 25
"""So many seeds show what a test plants, if the one that is written down does not any more."""

BY_LAW: Final = {
    **dict.fromkeys(
        (
            "forgets_what_a_chain_has_used",
            "hears_of_no_end_of_a_session",
            "a_start_looks_at_no_chain",
            "an_attempt_is_made_once",
            "nobody_is_to_hear_of_a_failure",
            "a_session_reads_another_clock",
        ),
        "known_as_it_was",
    ),
    **dict.fromkeys(
        (
            "sees_no_lineage",
            "does_not_count_sub_agents",
            "hears_of_no_setting_of_a_session",
            "records_another_judgement",
        ),
        "judged_as_it_was",
    ),
    "a8_a_message_interrupts_before_it_is_accepted": "aborts_are_asked_for",
    "a_late_answer_is_lost": "late_answers_kept",
    "an_order_is_not_heard": "orders_are_done",
    "what_is_dropped_goes_on": "orders_are_done",
    "a_child_is_archived_too_early": "children_have_their_hour",
    "a_child_is_never_archived": "children_have_their_hour",
    "a_thread_is_given_up_too_early": "threads_have_their_time",
    "a_thread_is_kept_for_ever": "threads_have_their_time",
    "a_silent_worker_has_sent_its_text": "shown_once",
    "a_call_is_given_twice": "shown_once",
    "a_queue_has_no_fence": "deposed",
    "a_door_answers_unread": "own_writes_read",
}
"""The planted faults that a law by itself has to find, whatever others do."""
RECORDED: Final = ("a6_turns_come_to_whoever_has_the_key", "skips_by_substring")
"""The planted faults that decide something else, which a sealed replay sees."""


def fault(name: str, seed: int) -> bool:
    """Say whether a seed finds a planted fault."""
    with BUGS[name]():
        laws = {finding.law for finding in simulate(seed).findings}
    return BY_LAW[name] in laws if name in BY_LAW else bool(laws)


def recorded(name: str, seed: int) -> bool:
    """Say whether what a seed recorded with a planted fault is replayed otherwise."""
    with BUGS[name]():
        kept = recorded_in(seed)
    return check_sealed(*kept) != []


def rule(name: str, seed: int) -> bool:
    """Say whether what a seed recorded is decided otherwise by another rule, alone and in a sealed replay."""
    kept = log_of(seed)
    with rewritten(*RULES[name]):
        return differing(kept) != [] and check_sealed(*kept) != []


def record(name: str, seed: int) -> bool:
    """Say whether a decision of a seed is another one when its record says a field otherwise."""
    return name in seen_of(log_of(seed), {name})


Shows = Callable[[str, int], bool]

KINDS: Final[Mapping[str, tuple[Shows, tuple[str, ...]]]] = {
    "fault": (fault, tuple(BUGS)),
    "recorded": (recorded, RECORDED),
    "rule": (rule, tuple(RULES)),
    "record": (record, RECORDS),
}
"""What is planted: what says whether a seed shows it, and all that there is."""


def seeds(kind: str) -> dict[str, int]:
    """Return the seed that is written down for each of a kind."""
    return {name: seed for (of, name), seed in _read().items() if of == kind}


def is_shown(kind: str, name: str) -> bool:
    """Say whether the seed that is written down shows what is planted, or else one of a few others."""
    return any(seed is not None for _, _, seed in _found(OTHERS, kind, (name,)))


def find(most: int, jobs: int) -> Iterator[tuple[str, str, int | None]]:
    """Look for seeds that show what those that are written down show no more, and write them. Yield what was lost, and is found."""
    asked: list[tuple[str, tuple[str, ...]]] = [
        (kind, (name,)) for kind in ("fault", "recorded") for name in KINDS[kind][1]
    ]
    asked += [("rule", KINDS["rule"][1]), ("record", KINDS["record"][1])]  # of one log each
    written = {(kind, name): seed for (kind, name), seed in _read().items() if name in KINDS[kind][1]}
    with ProcessPoolExecutor(jobs, initializer=partial(logging.disable, logging.CRITICAL)) as pool:
        for looked in as_completed([pool.submit(_look, most, kind, names) for kind, names in asked]):
            for kind, name, seed in looked.result():
                if seed is None or written.get((kind, name)) != seed:
                    yield kind, name, seed
                written[kind, name] = seed or 0
    FILE.write_text(
        "".join(
            f"{kind} {written[kind, name]} {name}\n" for kind, (_, names) in KINDS.items() for name in names
        ),
        encoding="utf-8",
    )


def _read() -> dict[tuple[str, str], int]:
    read = (line.split(" ", 2) for line in FILE.read_text(encoding="utf-8").splitlines())
    return {(kind, name): int(seed) for kind, seed, name in read}


def _look(most: int, kind: str, names: tuple[str, ...]) -> list[tuple[str, str, int | None]]:
    return [*_found(most, kind, names)]


def _found(most: int, kind: str, names: Collection[str]) -> Iterator[tuple[str, str, int | None]]:
    """Yield for each of a kind a seed that shows it: the one that is written down, or else the first of so many; None: there is none."""
    shows, _ = KINDS[kind]
    known = seeds(kind)
    lost = {*names}
    for name in names:
        if name in known and shows(name, known[name]):
            lost.discard(name)
            yield kind, name, known[name]
    for seed in range(most) if lost else ():
        for name in sorted(name for name in lost if shows(name, seed)):
            lost.discard(name)
            yield kind, name, seed
        if not lost:
            break
    yield from ((kind, name, None) for name in lost)
