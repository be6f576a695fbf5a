"""Scenarios recorded on the original, played here: what differs is what the protocol asks for, and nothing else does."""

import ast
import re
from pathlib import Path

import pytest

from intersession import load_config
from support.every_day import every_day
from support.pages.clauses import all_clauses
from support.paths import ROOT
from support.recordings.compared import found, in_order
from support.recordings.scenarios import configs, scenarios
from support.recordings.table import (
    DIFFERENCES,
    HEADING,
    crashes,
    names_of_differences,
    played,
    section,
    table,
)


@pytest.mark.clause("KEY-2", "KEY-3", "KEY-4", "KEY-5", "KEY-6", "KEY-7")
@pytest.mark.clause(
    "LIST-1", "LIST-2", "LIST-3", "LIST-4", "LIST-5", "LIST-6", "HIST-2", "HIST-3", "HIST-4", "HIST-6"
)
@pytest.mark.clause(
    "SEND-1", "SEND-2", "SEND-4", "SEND-5", "SEND-7", "SEND-8", "SEND-10", "INB-1", "INB-3", "PROV-2"
)
@pytest.mark.clause(
    "LOOP-1", "LOOP-2", "LOOP-6", "LOOP-7", "ANN-1", "ANN-2", "ANN-3", "VIS-2", "ATT-1", "ATT-2", "ATT-4"
)
@pytest.mark.clause(
    "SPAWN-1", "SPAWN-2", "SPAWN-4", "SPAWN-6", "SPAWN-7", "SPAWN-8", "SPAWN-9", "SPAWN-10", "SPAWN-11"
)
@pytest.mark.parametrize("scenario", every_day(played().keys(), *list(played())[::8]))
def test_a_recorded_scenario_differs_in_what_is_written_down_and_in_nothing_else(
    tmp_path: Path, scenario: str
) -> None:
    known = table().get(scenario, {"differences": {}, "codes": []})
    named = [item for items in known["differences"].values() for item in items]

    differences, codes = found(played()[scenario], tmp_path)

    assert in_order(differences) == in_order(named)
    assert codes == known["codes"]


def test_each_difference_belongs_to_a_clause_that_the_page_of_differences_has() -> None:
    page = DIFFERENCES.read_text(encoding="utf-8").partition(HEADING)[0]
    listed = {
        clause
        for line in page.splitlines()
        if line.startswith("| ")
        for clause in re.findall(r"[A-Z]+-[0-9]+", line.split(" | ")[0])
    }
    used = {name.partition(" ")[0] for names in names_of_differences().values() for name in names}

    assert used <= listed


def test_the_page_of_differences_counts_the_scenarios() -> None:
    assert section() in DIFFERENCES.read_text(encoding="utf-8"), (
        "run python tests/support/recordings/table.py --write"
    )


@pytest.mark.clause("CFG-1")
@pytest.mark.parametrize("name", configs())
def test_a_configuration_of_the_original_loads_with_a_notice_of_what_means_nothing_here(name: str) -> None:
    notices = load_config(configs()[name]).notices

    ignored = "agents.defaults.heartbeat, agents.defaults.skipBootstrap, plugins"
    assert f"accepted and not used here: {ignored}" in notices
    assert all("maxSpawnDepth" in notice or ignored in notice for notice in notices)


def test_each_recorded_crash_names_tests_that_there_are() -> None:
    recorded = {name for name in scenarios() if name.startswith("crash.")}
    named = [test for crash in crashes().values() for test in crash["tests"]]

    known = {clause for section in all_clauses().values() for clause in section}

    assert crashes().keys() == recorded
    assert {clause for crash in crashes().values() for clause in crash["clauses"]} <= known
    assert [test for test in named if not _is_there(test)] == []


def _is_there(test: str) -> bool:
    path, name, case = re.fullmatch(r"([^:]+)::(\w+)(?:\[(.+)\])?", test).groups()  # type: ignore[union-attr]
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return name in functions and (case is None or case in _cases(tree))


def _cases(tree: ast.Module) -> set[str]:
    """Return the names of the crash matrix's cases that every push runs."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Case":
            given = [ast.literal_eval(argument) for argument in node.args]
            point, scenario, channel = (given + ["", "talk", "keyed"][len(given) :])[:3]
            keywords = {
                item.arg: ast.literal_eval(item.value)
                for item in node.keywords
                if item.arg in {"nightly", "channel"}
            }
            if not keywords.get("nightly"):
                found.add(f"{point}-{scenario}-{keywords.get('channel', channel)}")
    return found
