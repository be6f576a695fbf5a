"""Every test that opens a log takes it from where the run says, on either store, or the house knows why it does not."""

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from support.one_store import ONE_STORE
from support.paths import ROOT

TESTS = ROOT / "tests"
OPENS = frozenset({"SqliteLog", "SessionSystem", "open_log", "Story", "demo_log", "source_log"})
"""Who is named in a test, or in a fixture or a function that it takes, has it open a log."""
ON_BOTH = frozenset(
    {"logs", "log_url", "postgres", "postgres_url", "ON_POSTGRES", "EVERY_STORE", "FILE_OR_POSTGRES"}
)
"""Whose log lies where the run says."""
MARKS = frozenset({"sqlite", "postgres"})


class Module(NamedTuple):
    """What a module of tests has: its functions and classes by what they name, and the marks of all of them and of each."""

    functions: Mapping[str, frozenset[str]]
    marks: frozenset[str]
    marks_of: Mapping[str, frozenset[str]]


@cache
def module(path: Path) -> Module:
    functions: dict[str, frozenset[str]] = {}
    marks_of: dict[str, frozenset[str]] = {}
    marks: frozenset[str] = frozenset()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            functions[node.name] = names_in(node)
            marks_of[node.name] = frozenset().union(*map(names_in, node.decorator_list))
        elif isinstance(node, ast.Assign) and "pytestmark" in names_in(node):
            marks |= names_in(node)
    return Module(functions, marks, marks_of)


def names_in(node: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                found.add(name)
            case ast.Constant(value=str(name)) if name.isidentifier():  # a fixture that is used by name
                found.add(name)
            case _:
                pass
    return frozenset(found)


def reached(name: str, known: Mapping[str, frozenset[str]]) -> set[str]:
    """Return all names in a function, and in those that it names."""
    found: set[str] = set()
    left = {name}
    while left:
        new = known.get(left.pop(), frozenset()) - found
        found |= new
        left |= new & known.keys()
    return found


def on_one_store(path: Path) -> list[str]:
    """Return the tests of a module that open a log which lies in a file, or in memory, whatever the run says."""
    here = module(path)
    if MARKS & here.marks:
        return []
    folders = [folder for folder in (path.parent, *path.parents) if folder.is_relative_to(TESTS)]
    shared = [TESTS / "support" / "fixtures.py", *(folder / "conftest.py" for folder in folders[::-1])]
    known: dict[str, frozenset[str]] = {}
    for each in shared:
        known |= module(each).functions if each.exists() else {}
    known |= here.functions
    return [
        name
        for name in here.functions
        if name.startswith("test_")
        and not here.marks_of[name] & MARKS
        and (names := reached(name, known)) & OPENS
        and not names & ON_BOTH
    ]


def excused(path: Path) -> str | None:
    """Return the place of the table that excuses a module."""
    place = path.relative_to(TESTS)
    return next(
        (each for places in ONE_STORE.values() for each in places if place.is_relative_to(each)), None
    )


@pytest.mark.ci
def test_who_opens_a_log_takes_it_on_either_store_or_there_is_a_reason() -> None:
    left = {path: on_one_store(path) for path in sorted(TESTS.rglob("test_*.py"))}
    unexcused = {
        str(path.relative_to(TESTS)): tests for path, tests in left.items() if tests and excused(path) is None
    }
    assert unexcused == {}, (
        "take the URL from log_url, mark it sqlite(why), or find it a reason in one_store.py"
    )

    used = {excused(path) for path, tests in left.items() if tests}
    needless = [each for places in ONE_STORE.values() for each in places if each not in used]
    assert needless == [], "all of it is run on both stores: take it out of one_store.py"


def test_a_module_without_a_reason_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "test_planted.py"
    planted.write_text(
        "def opened(path):\n    return SqliteLog(path)\n"
        "def test_file(tmp_path):\n    opened(tmp_path)\n"
        "def test_both(log_url):\n    log_at(log_url, SqliteLog)\n"
        "@pytest.mark.sqlite('why')\ndef test_marked(tmp_path):\n    opened(tmp_path)\n"
        "def test_none():\n    assert 1\n",
        encoding="utf-8",
    )

    assert on_one_store(planted) == ["test_file"]
