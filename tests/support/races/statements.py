"""Puts a turn before each statement of a module's functions, so that another thread may come in between."""

import ast
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from inspect import getsource, getsourcefile, isclass, isfunction
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final
from unittest.mock import patch

from support.races.turns import turn

TURN: Final = "_turn_of_a_race"


@contextmanager
def with_turns(*modules: ModuleType, only: str = "") -> Generator[None]:
    """Have other threads come in at each statement of these modules (or of the functions so named), for a block."""
    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(patch.object(module, TURN, turn, create=True))
            codes = dict(_codes(_with_turns(module)))
            for function in _functions(module):
                code = codes.get(function.__qualname__)
                if code is not None and function.__qualname__.startswith(only):
                    stack.callback(setattr, function, "__code__", function.__code__)
                    function.__code__ = code
        yield


class _Turns(ast.NodeTransformer):
    """Puts a turn before each statement that stands in a function."""

    def __init__(self) -> None:
        self._depth = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        self._depth += is_function
        super().generic_visit(node)
        if self._depth:
            for field in ("body", "orelse", "finalbody"):
                statements = getattr(node, field, None)
                if isinstance(statements, list) and not isinstance(node, ast.ClassDef):
                    setattr(node, field, [one for each in statements for one in self._behind_a_turn(each)])
        self._depth -= is_function
        return node

    @staticmethod
    def _behind_a_turn(statement: ast.stmt) -> Iterator[ast.stmt]:
        is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_docstring and not isinstance(statement, ast.Nonlocal | ast.Global):
            call = ast.Expr(ast.Call(func=ast.Name(id=TURN, ctx=ast.Load()), args=[], keywords=[]))
            yield ast.fix_missing_locations(ast.copy_location(call, statement))
        yield statement


def _with_turns(module: ModuleType) -> CodeType:
    tree = _Turns().visit(ast.parse(getsource(module)))
    return compile(tree, getsourcefile(module) or module.__name__, "exec")


def _codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """Yield the code of a module's functions and methods, by their qualified names."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one.co_qualname, one
            yield from _codes(one)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions of a module, and those of its classes: properties and managers of contexts, too."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        for one in [value, *vars(value).values()] if isclass(value) else [value]:
            if function := _function(one):
                yield function


def _function(value: Any) -> FunctionType | None:  # whatever stands in a module
    found = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
    found = getattr(found, "__wrapped__", found)
    return found if isfunction(found) else None
