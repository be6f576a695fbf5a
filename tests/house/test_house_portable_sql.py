"""Statements are such that the oldest PostgreSQL takes them that a log may lie on: the server of the tests is a new one."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support.paths import ROOT

PACKAGES = ("events", "projections", "actors")
INNER = re.compile(r"\b(?:FROM|JOIN)\s*\(\s*SELECT\b", re.IGNORECASE)
NAMED = re.compile(
    r"\s*(?:AS\s+)?(?!(?:CROSS|GROUP|INNER|JOIN|LEFT|LIMIT|ON|ORDER|UNION|WHERE)\b)\w+", re.IGNORECASE
)


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module, each as a whole: what is put into one stands as a name."""
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            parts = (str(one.value) if isinstance(one, ast.Constant) else "put_in" for one in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield node.lineno, node.value


def nameless(statement: str) -> Iterator[str]:
    """Yield the inner statements behind FROM that have no name: PostgreSQL takes these from version 16 on."""
    for found in INNER.finditer(statement):
        at, depth = statement.index("(", found.start()), 0
        for end in range(at, len(statement)):
            depth += {"(": 1, ")": -1}.get(statement[end], 0)
            if depth == 0:
                if NAMED.match(statement, end + 1) is None:
                    yield statement[at : end + 1]
                break


def nameless_in(path: Path) -> list[str]:
    """Return where a module has such statements."""
    source = path.read_text(encoding="utf-8")
    if "select" not in source.lower():
        return []  # to parse every module takes long
    tree = ast.parse(source)
    return [f"{path.name}:{line}: {inner}" for line, text in texts(tree) for inner in nameless(text)]


def test_every_inner_statement_has_a_name() -> None:
    """A checkpoint of a log on PostgreSQL 15 was refused by the server."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    assert len(paths) > 100
    assert [found for path in paths for found in nameless_in(path)] == []


def test_one_without_a_name_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "a = 'SELECT x FROM (SELECT max(y) AS x FROM t) WHERE x > 1'\n"
        "b = f'SELECT x FROM (SELECT {a} FROM t\\n) JOIN u ON x = y'\n"
        "c = 'SELECT x FROM (SELECT max(y) AS x FROM t) AS one'\n"
        "d = 'SELECT 1 FROM t WHERE x IN (SELECT y FROM u) ORDER BY x'\n",
        encoding="utf-8",
    )
    assert [found.partition(": ")[0] for found in nameless_in(planted)] == ["planted.py:1", "planted.py:2"]
