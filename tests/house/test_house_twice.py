"""What the project has it has once: no function stands in two places, not even under other names."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

import pytest

from support.paths import ROOT

LINES = 5
"""Shorter functions may be alike: to look one up takes longer than to read it."""

FOLDERS = ("actors", "events", "projections", "tests")

NAME = re.compile(r"[A-Za-z_]\w*")

READS = '''
def wait_for(file):
    """Wait."""
    opened = open(file)
    try:
        read(opened)
    finally:
        opened.close()
'''


Function = ast.FunctionDef | ast.AsyncFunctionDef


def statements_of(function: Function) -> list[ast.stmt]:
    return function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body


def shape_of(function: Function, lines: list[str]) -> str:
    """Return how a function looks, whatever names are in it."""
    statements = statements_of(function)
    if not statements:
        return ""
    body = lines[statements[0].lineno - 1 : statements[-1].end_lineno]
    return NAME.sub("n", "\n".join(line.strip() for line in body)) if len(body) >= LINES else ""


def meaning_of(function: Function) -> str:
    """Return what a function does, whatever it and its parameters are called."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    places = {one.arg: f"_{number}" for number, one in enumerate(given)}
    statements = statements_of(function)
    for node in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(node, ast.Name):
            node.id = places.get(node.id, node.id)
    return "\n".join(map(ast.unparse, statements))


def functions_in(source: str) -> Iterator[Function]:
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, Function))


def twice(sources: Mapping[str, str]) -> list[list[str]]:
    """Return the places of functions that stand more than once."""
    alike: dict[str, list[str]] = defaultdict(list)
    for path, source in sources.items():
        lines = source.splitlines()
        for function in functions_in(source):
            if shape := shape_of(function, lines):
                alike[shape].append(path)
    # All trees at once would be a gigabyte.
    again = sorted({path for paths in alike.values() if len(paths) > 1 for path in paths})
    found: dict[str, list[str]] = defaultdict(list)
    for path in again:
        lines = sources[path].splitlines()
        for function in functions_in(sources[path]):
            if len(alike[shape_of(function, lines)]) > 1:
                found[meaning_of(function)].append(f"{path}:{function.lineno} {function.name}")
    return [places for places in found.values() if len(places) > 1]


@pytest.mark.ci
def test_no_function_stands_twice() -> None:
    sources = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name != "verify.py"
        or path.parent.name != "bundles"  # it has to stand by itself on another machine
    }

    assert twice(sources) == []


def test_a_function_that_is_written_again_under_other_names_is_seen() -> None:
    again = READS.replace("wait_for", "_wait").replace("file", "path")

    assert twice({"a.py": READS, "b.py": again}) == [["a.py:2 wait_for", "b.py:2 _wait"]]
    assert twice({"a.py": READS, "b.py": again.replace("read(", "write(")}) == []
