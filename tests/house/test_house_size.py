"""The source grows only for what a user gets: each package has a budget, and the changelog names what it was spent on."""

from pathlib import Path

import pytest

from support.pages.size import (
    BUDGETS,
    PACKAGES,
    Budget,
    Size,
    lowered,
    problems,
    read_budgets,
    size_of,
    unreleased,
    written,
)
from support.paths import ROOT

CHANGELOG = """# Changelog

## [Unreleased]

- Forks: a log
  of its own.

### Fixed

- Nothing.

## [0.1.0]

- Sends.
"""
ITEMS = ["Forks: a log of its own.", "Nothing."]
BUDGET = Budget(Size(1_000, 10, 100), {"Forks: a log": Size(500, 5, 50)})


def test_no_package_is_larger_than_what_users_get_accounts_for() -> None:
    sizes = {name: size_of(package) for name, package in PACKAGES.items()}
    items = unreleased((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))

    assert [*problems(sizes, read_budgets(BUDGETS.read_text(encoding="utf-8")), items)] == []


def test_the_items_of_the_changelog_that_are_not_released_are_found() -> None:
    assert unreleased(CHANGELOG) == ITEMS


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (Size(1_515, 15, 150), []),
        (Size(1_516, 15, 150), ["events has 1,516 lines, 16 more than its budget"]),
        (Size(1_500, 16, 152), ["events has 16 modules, 1 more", "events has 152 names, 2 more"]),
        (Size(1_484, 15, 150), ["events has 1,484 lines, 16 less than its budget: lower that"]),
    ],
)
def test_what_is_larger_than_its_budget_is_named_and_so_is_a_budget_that_is_too_large(
    size: Size, said: list[str]
) -> None:
    found = [*problems({"events": size}, {"events": BUDGET}, ITEMS)]
    assert len(found) == len(said)
    assert all(one.startswith(beginning) for one, beginning in zip(found, said, strict=True))


def test_growth_is_for_something_that_the_changelog_names() -> None:
    (found,) = problems({"events": Size(1_500, 15, 150)}, {"events": BUDGET}, ["Sends."])
    assert (
        found
        == "events has grown for 'Forks: a log', and no item of the changelog's unreleased section begins so"
    )


def test_a_budget_is_lowered_to_what_there_is_and_never_raised() -> None:
    smaller, larger = {"events": Size(1_400, 12, 150)}, {"events": Size(1_600, 16, 160)}

    assert lowered(smaller, {"events": BUDGET})["events"].now == Size(1_400, 12, 150)
    assert lowered(larger, {"events": BUDGET}) == {"events": BUDGET}
    assert read_budgets(written({"events": BUDGET})) == {"events": BUDGET}


def test_lines_modules_and_names_for_others_are_counted(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "one.py").write_text("A, _B = 1, 2\nC: int = 3\n_d = e = 4\n")
    (tmp_path / "room" / "two.py").write_text("class F:\n    g = 1\n\n\nasync def h(): ...\ndef _i(): ...\n")

    assert size_of(tmp_path) == Size(9, 2, 5)
