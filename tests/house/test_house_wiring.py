"""A running system is put together in one place, `intersession_actors/assembly/system/`; a replay has its own world."""

import ast
from collections.abc import Iterator
from pathlib import Path

from support.paths import ROOT

SOURCES = ROOT / "actors"  # the packages below know nothing of actors
WIRING = SOURCES / "intersession_actors" / "assembly" / "system"
REPLAY = SOURCES / "intersession_actors" / "hindsight" / "replaying"
"""Puts the actors into a world of what was recorded: the second place, and there is no third."""
WORKER = SOURCES / "intersession" / "worker"
"""Calls agents, and has nothing else of a system."""
PARTS = frozenset(
    {
        "AgentExecutor",
        "ChannelCaller",
        "ContextCache",
        "Coordinator",
        "Outbox",
        "PooledRuntime",
        "RulesInForce",
        "Service",
        "SessionActor",
        "Spawner",
        "Supervisor",
        "TimerWheel",
        "World",
    }
)
JUDGING = frozenset({"Requester", "Speaker", "judge_send", "tools_for"})
"""What judges a session, or says who is judged: it is for `RulesInForce`."""

PLANTED = """
from intersession_actors.owners import streams
from intersession_actors.calls.service.service import Service
from intersession_actors.calls.service.supervisor import Recipe, Supervisor
from intersession_actors.owners.streams.world import World as Shared

def rewired(log: Service) -> Supervisor:
    Recipe(Supervisor, ())
    return Supervisor(streams.World(log), Shared(log))
"""


def parts_made(source: str) -> Iterator[tuple[int, str]]:
    """Yield where a source constructs parts: a call of one, or its handing over to whoever will call it."""
    if not any(part in source for part in PARTS):
        return  # most modules need not be parsed
    tree = ast.parse(source)
    named = {part: part for part in PARTS}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            named |= {each.asname: each.name for each in node.names if each.asname and each.name in PARTS}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for made in (node.func, *node.args, *(keyword.value for keyword in node.keywords)):
                if isinstance(made, ast.Name) and made.id in named:
                    yield made.lineno, named[made.id]
                elif isinstance(made, ast.Attribute) and made.attr in PARTS:
                    yield made.lineno, made.attr


def test_parts_of_a_system_are_constructed_in_one_place() -> None:
    elsewhere = [
        f"{path.relative_to(ROOT)}:{line} {part}"
        for path in sorted(SOURCES.rglob("*.py"))
        if not {WIRING, REPLAY, WORKER} & {*path.parents}
        for line, part in parts_made(path.read_text(encoding="utf-8"))
    ]

    assert elsewhere == []


def test_all_parts_are_constructed_there() -> None:
    made = {part for path in WIRING.glob("*.py") for _, part in parts_made(path.read_text(encoding="utf-8"))}

    assert made == PARTS


def rules_of(folder: Path) -> set[str]:
    """Return how the places of a folder have rules in force made, and what they judge themselves."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in folder.glob("*.py")]
    made = {
        ast.unparse(keyword.value)
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "RulesInForce"
        for keyword in node.keywords
        if keyword.arg == "offered"
    }
    judged = {
        each.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
        if each.name in JUDGING
    }
    return made | judged


def test_a_replay_asks_the_rules_that_a_running_system_asks() -> None:
    # Which rule let a text out is said again by what the record of that knew.
    assert rules_of(WIRING) == rules_of(REPLAY / "redeciding") - {"judge_send"} == {"tools_offered"}


def test_a_rule_that_a_replay_has_of_its_own_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "replayer.py").write_text(
        "from intersession_actors.rules.policy import judge_send\nrules = RulesInForce(config, offered=mine)\n"
    )

    assert rules_of(tmp_path) == {"mine", "judge_send"}


def test_a_part_that_is_constructed_elsewhere_is_noticed() -> None:
    assert sorted(parts_made(PLANTED)) == [
        (8, "Supervisor"),
        (9, "Supervisor"),
        (9, "World"),
        (9, "World"),
    ]
