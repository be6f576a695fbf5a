"""Faces that load what they give when it is first asked for: who reads a log needs nothing of what writes one."""

import builtins
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import TracebackType
from typing import Any, Final, NamedTuple


class on_demand:  # noqa: N801 - it is used as a statement
    """Note the imports of a block and do them later, each when its name is first asked for.

    It stands around the imports of a package's face::

        with on_demand(globals()):
            from package.module import name

    `from package import name` then loads `package.module` and nothing that other names of the face need. Type checkers and
    import contracts see the imports as they stand. A name must not be called as a module of the package is: who imports that
    module would put it in the name's place.

    Raises:
        ImportError: the block has another statement than `from MODULE import NAME`.
    """

    def __init__(self, face: dict[str, object]) -> None:
        self._face: Final = face
        self._open = False
        self._before = builtins.__import__

    def __enter__(self) -> None:
        noted: Any = self._noted  # Python hands it all in order, not by the names that type checkers know
        self._before, self._open = builtins.__import__, True
        builtins.__import__ = noted

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        # Two threads that load two faces may leave each other's function there: it hands on whatever is not its own.
        self._open = False
        builtins.__import__ = self._before
        face = self._face
        homes = {name: noted for name, noted in face.items() if type(noted) is _Noted}
        for name in homes:
            del face[name]
        face["__getattr__"] = _loading(face, homes)
        face["__dir__"] = lambda: sorted({*face, *homes})

    def _noted(
        self,
        name: str,
        importer: Mapping[str, object] | None = None,
        local: Mapping[str, object] | None = None,
        names: Sequence[str] | None = (),
        level: int = 0,
    ) -> object:
        if importer is not self._face or not self._open:
            return self._before(name, importer, local, names or (), level)
        if not names or level:
            raise ImportError(f"{self._face['__name__']} may only have `from MODULE import NAME` there")
        return _Module(name)


class _Noted(NamedTuple):
    """A name that is not loaded yet."""

    module: str
    name: str


class _Module:
    """Stands for a module while a face notes what it takes from it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> _Noted:
        return _Noted(self._name, name)


def _loading(face: dict[str, object], homes: Mapping[str, _Noted]) -> Callable[[str], object]:
    def load(name: str) -> object:
        noted = homes.get(name)
        if noted is None:
            raise AttributeError(f"module {face['__name__']!r} has no attribute {name!r}")
        # Kept, so that it is asked for once.
        face[name] = value = getattr(import_module(noted.module), noted.name)
        return value

    return load
