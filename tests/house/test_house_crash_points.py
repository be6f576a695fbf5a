"""The crash matrix in docs/reliability.md and the crash points in the code are one list (O6)."""

import ast
import re

from support.paths import ROOT

PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
MATRIX = PAGE.partition("## The crash matrix")[2].partition("\n## ")[0]
POINT = re.compile(r"[A-Z][0-9]")
PASSES = re.compile(r"crash_point|\bPass\(")


def rows() -> list[list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in MATRIX.splitlines()]
    return [row for row in cells if POINT.fullmatch(row[0])]


def points_in_code() -> set[str]:
    """Return the names in the code: points are passed by name, at once or as an effect, or by a table of names in the same module."""
    found: set[str] = set()
    for folder in ("actors", "events", "projections"):
        for path in (ROOT / folder).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            if PASSES.search(source) and path.stem != "crash_points":
                found |= {
                    node.value
                    for node in ast.walk(ast.parse(source))
                    if isinstance(node, ast.Constant)
                    and isinstance(node.value, str)
                    and POINT.fullmatch(node.value)
                }
    return found


def test_every_row_of_the_matrix_is_whole_and_stands_once() -> None:
    assert {len(row) for row in rows()} == {7}
    assert len({row[0] for row in rows()}) == len(rows())


def test_the_matrix_names_the_points_of_the_code_and_no_others() -> None:
    named = {row[0] for row in rows() if row[2] == "named"}

    assert named == points_in_code()
