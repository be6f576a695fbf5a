"""Imports names of a module when they are first used: a reader of a log loads no code that writes one."""

import ast
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

_CONDITION: Final = "TYPE_CHECKING"


def on_demand(face: dict[str, object]) -> None:
    """Make a module import the names that it declares for type checkers when each is first used.

    `face` is the module's `globals()`. It stands behind these imports::

        if TYPE_CHECKING:
            from package.module import name

        on_demand(globals())

    `from face import name` then loads `package.module` and nothing that other names of the face need. Type checkers and
    import contracts see the imports as they stand. A name must not be called as a module of the same package is: whoever
    imports that module would put it in the name's place.
    """

    @cache
    def homes() -> Mapping[str, str]:
        return _homes(Path(str(face["__file__"])).read_text(encoding="utf-8"))

    def load(name: str) -> object:
        module = homes().get(name)
        if module is None:
            raise AttributeError(f"module {face['__name__']!r} has no attribute {name!r}")
        # Kept, so that it is asked for once.
        face[name] = value = getattr(import_module(module), name)
        return value

    # Type checkers must not see it: with a `__getattr__` they would take any name for one that is there.
    face["__getattr__"] = load
    face["__dir__"] = lambda: sorted({*face, *homes()})


def _homes(source: str) -> Mapping[str, str]:
    """Return which module each name is from that a source imports for type checkers."""
    return {
        alias.name: found.module
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == _CONDITION
        for found in block.body
        if isinstance(found, ast.ImportFrom) and found.module is not None
        for alias in found.names
    }
