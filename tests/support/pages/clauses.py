"""Which tests prove which clause of the protocol: reads both, writes `docs/clauses.md`.

    python tests/support/pages/clauses.py            prints what would be written
    python tests/support/pages/clauses.py --write    writes docs/clauses.md

The marks are read from the sources, not from a run: `@pytest.mark.clause("LIST-4")` on a test or a class, in a
module's `pytestmark`, or among the `marks=` of a parameter. Marks that are made of a table, case by case, are not read:
`pytest --clause` knows them, and this page has them by the tests beside.
"""

import ast
import functools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROTOCOL = ROOT / "docs" / "protocol.md"
RELIABILITY = ROOT / "docs" / "reliability.md"
CLAUSES = ROOT / "docs" / "clauses.md"
COMMAND = "python tests/support/pages/clauses.py --write"

_SECTION = re.compile(r"## (?P<title>.+?) \((?P<area>[A-Z]+)\)")
_NUMBER = re.compile(r"(?P<number>[0-9]+)\. ")
_ROW = re.compile(r"\| (?P<id>[A-Z]+[0-9]+) \|")


def protocol_clauses(text: str) -> dict[str, list[str]]:
    """Return the ids of the protocol's clauses, by section title, in their order."""
    found: dict[str, list[str]] = {}
    section = area = ""
    for line in text.splitlines():
        if heading := _SECTION.fullmatch(line):
            section, area = heading["title"], heading["area"]
            found[section] = []
        elif line.startswith("## "):
            section = ""
        elif section and (clause := _NUMBER.match(line)):
            found[section].append(f"{area}-{clause['number']}")
    return found


def reliability_clauses(text: str) -> list[str]:
    """Return the ids of the clauses in the tables of docs/reliability.md, in their order.

    Facts are not clauses, and properties of later versions not yet.
    """
    found: list[str] = []
    aside = False
    for line in text.splitlines():
        if line.startswith("## "):
            aside = "Facts" in line or "later versions" in line
        elif not aside and (row := _ROW.match(line)):
            found.append(row["id"])
    return found


def all_clauses() -> dict[str, list[str]]:
    """Return the ids of all clauses, by section. Without docs/reliability.md, its clauses are those that are marked."""
    clauses = protocol_clauses(PROTOCOL.read_text(encoding="utf-8"))
    if RELIABILITY.exists():
        clauses["Reliability"] = reliability_clauses(RELIABILITY.read_text(encoding="utf-8"))
    else:
        clauses["Reliability"] = sorted(filter(re.compile(r"[A-Z]+[0-9]+").fullmatch, marked()))
    return clauses


@functools.cache
def marked(tests: Path = ROOT / "tests") -> dict[str, list[str]]:
    """Return the tests that are marked with each clause, as `<file>::<test>`."""
    found: dict[str, set[str]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        place = path.relative_to(tests.parent).as_posix()
        for name, clause in _marks(ast.parse(path.read_text(encoding="utf-8")), place):
            found.setdefault(clause, set()).add(name)
    return {clause: sorted(names) for clause, names in found.items()}


def page(clauses: dict[str, list[str]], tests: dict[str, list[str]]) -> str:
    """Return docs/clauses.md."""
    everything = [clause for section in clauses.values() for clause in section]
    bare = [clause for clause in everything if clause not in tests]
    lines = [
        "# Clauses and the tests that prove them",
        "",
        f"Made by `{COMMAND}` from the `clause` marks of the tests; not to be edited.",
        "",
        "Files are those below `tests/`, with how many of their tests prove the clause. `pytest --clause KEY-1` runs them,",
        "with `--collect-only -q` it names them.",
        "",
        f"{len(everything) - len(bare)} of {len(everything)} clauses have a test.",
    ]
    if bare:
        lines += ["", f"Without a test: {', '.join(bare)}."]
    for section, ids in clauses.items():
        lines += ["", f"## {section}", "", "| clause | tests in |", "| --- | --- |"]
        lines += [f"| {clause} | {_files(tests.get(clause, [])) or 'no test'} |" for clause in ids]
    return "\n".join(lines) + "\n"


def _files(tests: list[str]) -> str:
    """Return the files of tests below `tests/`, the one with the most first, with how many each has."""
    files = Counter(name.partition("::")[0].removeprefix("tests/").removesuffix(".py") for name in tests)
    return ", ".join(
        f"`{name}`" if times == 1 else f"`{name}`&nbsp;({times})" for name, times in files.most_common()
    )


def current_page() -> str:
    """Return docs/clauses.md as it should be now."""
    return page(all_clauses(), marked())


def _is_clause(function: ast.expr) -> bool:
    """Whether it is `pytest.mark.clause`; to write every call out to see that took most of the time."""
    match function:
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="pytest"), attr="mark"), attr="clause"):
            return True
        case _:
            return False


def _marks(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    """Find the clause marks in a piece of source, each with the innermost test or class it is on."""
    for child in ast.iter_child_nodes(node):
        inner = name
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{name}::{child.name}"
        if isinstance(child, ast.Call) and _is_clause(child.func):
            literal = (argument for argument in child.args if isinstance(argument, ast.Constant))
            yield from ((inner, str(argument.value)) for argument in literal)
        yield from _marks(child, inner)


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        CLAUSES.write_text(current_page(), encoding="utf-8")
    else:
        sys.stdout.write(current_page())
