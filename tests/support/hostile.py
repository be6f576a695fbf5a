"""The rows of `tests/data/hostile_inputs.jsonl`, for tests parametrised by row id."""

import ast
import json
import unicodedata
from typing import Any

from support.paths import DATA

_ROWS = [
    json.loads(line) for line in (DATA / "hostile_inputs.jsonl").read_text(encoding="utf-8").splitlines()
]


def rows(area: str, *, field: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of an area, or those of one field in it."""
    return [row for row in _ROWS if row["area"] == area and field in {None, row["field"]}]


def row_id(row: dict[str, Any]) -> str:
    """Name a row in a test's id."""
    return str(row["id"])


def given(row: dict[str, Any]) -> Any:
    """Return the input of a row: as it stands, or made by its `gen` expression of constants, `+` and `*`."""
    return row["input"] if "input" in row else _value(ast.parse(row["gen"], mode="eval").body)


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left) + _value(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left) * _value(right)
        case ast.BinOp(left=left, op=ast.LShift(), right=right):
            return _value(left) << _value(right)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _value(left) ** _value(right)
        case _:
            message = f"not a constant expression: {ast.dump(node)}"
            raise ValueError(message)


def steers(text: str) -> list[str]:
    """Return the characters that a terminal would obey, or that turn the order of others round."""
    return [
        character
        for character in text
        if unicodedata.category(character) in {"Cc", "Cf", "Cs"} and character != "\n"
    ]
