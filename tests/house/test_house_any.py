"""Every `Any` in the source has its reason beside it: a comment on its line or above it. JSON has names that have one."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from support.paths import ROOT

SOURCES = ("actors", "events", "projections")
TOLD_TO_A_TOOL = re.compile(r"#\s*(noqa|type: ignore|pyright: ignore)[^#]*")

PLANTED = """
from typing import Any, cast

bare: Any = 1
quoted = cast("dict[str, Any]", bare)
silenced: Any = 1  # noqa: ANN401
said: Any = 1  # a library's own
# What comes from there is of any kind.
said_above: Any = 1
not_said: Any = 1
explained: Any = 1  # noqa: ANN401  # a library's own
words = "Any other text"
"""


def reasons(source: str) -> set[int]:
    """Return the lines that have a reason: their own comment, or comments alone on the lines above."""
    lines = source.splitlines()
    said: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and TOLD_TO_A_TOOL.sub("", token.string).strip("# "):
            line = token.start[0]
            said.add(line)
            while line < len(lines) and lines[line - 1].lstrip().startswith("#"):
                line += 1
                said.add(line)
    return said


def anys(tree: ast.AST) -> Iterator[int]:
    """Yield the lines with an `Any`, also in the quotes of a type."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "Any":
            yield node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "Any" in node.value:
            try:
                quoted = ast.parse(node.value, mode="eval")
            except SyntaxError:
                continue  # prose
            if any(isinstance(each, ast.Name) and each.id == "Any" for each in ast.walk(quoted)):
                yield node.lineno


def without_reason(source: str) -> list[int]:
    if "Any" not in source:
        return []  # most modules need not be parsed
    return sorted({*anys(ast.parse(source))} - reasons(source))


def test_every_any_in_the_source_has_its_reason_beside_it() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{line}: say why this is Any, narrow it, or use a name of plain_json.py"
        for root in SOURCES
        for path in sorted((ROOT / root).rglob("*.py"))
        for line in without_reason(path.read_text(encoding="utf-8"))
    ]

    assert bare == []


def test_an_any_without_a_reason_is_noticed() -> None:
    assert without_reason(PLANTED) == [4, 5, 6, 10]
