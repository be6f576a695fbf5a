"""Tests stand where their subjects stand, each under a name of its own, and what they share is in tests/support/."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

from support.paths import ROOT, TESTS

MIRRORS = {
    "actors": "actors/intersession_actors",
    "doors": "actors/intersession",
    "events": "events/intersession_events",
    "projections": "projections/intersession_projections",
}


_NUMBER = re.compile(r"^([A-Z_]+)(?:: [^=\n]+)? = (?:-?[0-9][0-9_.* <+()]*$|Limit\()", re.MULTILINE)
_TAKEN = re.compile(r"^from intersession[\w.]* import (\([^)]*\)|.*)", re.MULTILINE)
MARKS = {
    "ANY_VERSION": "stands for no number",
    "BEGINNING_MS": "when simulations begin, for the store of one",
    "FORMAT": "is what a file says of itself",
    "KNOWN": "held against a number that is written out",
    "_LAST_EVENTS": "held against a number that is written out",
    "PAGE": "how much is read at once: tests need more than that, whatever it is",
    "PATIENCE_S": "waited for by whoever looks what comes then",
    "REFUSED": "the table of settings, which has the name of an exit code",
    "TOUCHED": "stands for no number",
    "VALUES": "the table of secrets' names, which has the name of a limit",
}
"""Numbers of the code that tests may take from it: none is what a test is about."""


def folders(top: Path) -> set[str]:
    """Return the folders below one that have Python files, as they are called from there."""
    return {path.parent.relative_to(top).as_posix() for path in top.rglob("*.py")}


@pytest.mark.parametrize("folder", MIRRORS)
def test_a_folder_of_tests_is_a_room_of_the_package(folder: str) -> None:
    assert folders(TESTS / folder) - folders(ROOT / MIRRORS[folder]) == set()


def test_beside_tests_are_only_tests() -> None:
    apart = {"benchmarks", "simulation", "support"}
    beside = {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if path.relative_to(TESTS).parts[0] not in apart and not path.name.startswith("test_")
    }

    assert {name for name in beside if not name.endswith("conftest.py")} == {"golden/make_golden.py"}
    assert not list((TESTS / "support").rglob("test_*.py"))


def test_no_two_files_of_tests_have_one_name() -> None:
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))

    assert [name for name, times in names.items() if times > 1] == []


def numbers_of(source: str) -> set[str]:
    """Return the constants of a module that are numbers, by name."""
    return set(_NUMBER.findall(source))


def numbers_taken(test: str, numbers: set[str]) -> set[str]:
    """Return the numbers that a test takes from the code, whether by their names or by their modules'."""
    taken = {name for names in _TAKEN.findall(test) for name in re.findall(r"\w+", names)}
    of_modules = {name for module, name in re.findall(r"\b(\w+)\.([A-Z_]+)\b", test) if module in taken}
    return (taken | of_modules) & numbers


def test_a_test_writes_out_the_numbers_that_it_is_about() -> None:
    """One that asks the code how many there may be is green whatever the code says."""
    packages = (path for top in MIRRORS.values() for path in (ROOT / top).rglob("*.py"))
    numbers = {name for path in packages for name in numbers_of(path.read_text(encoding="utf-8"))}
    tests = [path for path in TESTS.rglob("*.py") if path.relative_to(TESTS).parts[0] != "benchmarks"]
    taken = {name for path in tests for name in numbers_taken(path.read_text(encoding="utf-8"), numbers)}

    assert taken - MARKS.keys() == set()
    assert MARKS.keys() - taken == set()


def test_a_number_that_is_taken_from_the_code_is_noticed() -> None:
    numbers = numbers_of(
        "MOST: Final = 16\nLABEL: Final = Limit(\n    256)\nNAMES: Final = (\n    'a',\n)\nBIG = 1 << 20\n"
    )
    by_name = "from intersession_actors.rules.gate import (\n    LABEL,\n    NAMES,\n)\n"

    assert numbers == {"MOST", "LABEL", "BIG"}
    assert numbers_taken(by_name, numbers) == {"LABEL"}
    assert numbers_taken("from intersession_actors import gate\nassert gate.MOST == most.BIG\n", numbers) == {
        "MOST"
    }


@pytest.mark.parametrize("name", ["here", "ci", "nightly"])
def test_no_property_fails_on_a_busy_machine(name: str) -> None:
    """Before: an example that took 200 ms failed, so the tests did at random."""
    assert settings.get_profile(name).deadline is None


def test_ci_tries_the_same_examples_each_time() -> None:
    assert settings.get_profile("ci").derandomize


def test_what_ci_runs_is_there() -> None:
    """A room that has moved leaves pytest with no tests."""
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    named = re.findall(r"\btests/\S+", script)

    there = subprocess.run(
        ["/bin/bash", "-c", f"ls -d {' '.join(named)}"], cwd=ROOT, capture_output=True, check=False
    )

    assert len(named) >= 3
    assert there.returncode == 0, there.stderr
