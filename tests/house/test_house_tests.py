"""Tests stand where their subjects stand, each under a name of its own, and what they share is in tests/support/."""

import re
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


def test_each_finding_that_a_test_names_is_told_in_the_docs() -> None:
    named = re.compile(r"\b[Ff]indings? ((?:[A-F][0-9]+[a-z]?(?:, | and )?)+)")
    texts = (path.read_text() for path in TESTS.rglob("*.py"))
    ids = {one for text in texts for found in named.findall(text) for one in re.findall(r"[A-F]\w+", found)}
    page = (ROOT / "docs/explanation/findings.md").read_text()

    assert {"A1", "A23", "B5"} <= ids
    assert {one for one in ids if f"**{one}**" not in page} == set()


@pytest.mark.parametrize("name", ["here", "ci", "nightly"])
def test_no_property_fails_on_a_busy_machine(name: str) -> None:
    """Finding F1: an example that took 200 ms failed, so the tests did at random."""
    assert settings.get_profile(name).deadline is None


def test_ci_tries_the_same_examples_each_time() -> None:
    assert settings.get_profile("ci").derandomize
