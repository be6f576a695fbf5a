"""Faces that load what they give when it is first asked for: who reads a log needs nothing of what writes one."""

import builtins
import threading
from collections.abc import Callable, Mapping
from functools import partial
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

    def __enter__(self) -> None:
        _NOTING.begin(self._face)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        face = self._face
        _NOTING.end(face)
        homes = {name: noted for name, noted in face.items() if type(noted) is _Noted}
        for name in homes:
            del face[name]
        face["__getattr__"] = _loading(face, homes)
        face["__dir__"] = lambda: sorted({*face, *homes})


class _Noting:
    """Stands in the place of Python's import while faces are read, and hands on whatever is not theirs.

    Several threads may read faces at once: it comes with the first of them and goes with the last.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faces: dict[int, Mapping[str, object]] = {}
        self._before: Any = None  # type checkers know Python's import by its parameters
        self._instead: Any = None  # the same

    def begin(self, face: Mapping[str, object]) -> None:
        with self._lock:
            if not self._faces:
                self._before = builtins.__import__
                # A new one each time: who has put his own before the last one calls that, and not this one in a circle.
                self._instead = partial(self._imported, self._before)
                builtins.__import__ = self._instead
            self._faces[id(face)] = face

    def end(self, face: Mapping[str, object]) -> None:
        with self._lock:
            del self._faces[id(face)]
            if not self._faces and builtins.__import__ is self._instead:
                builtins.__import__ = self._before

    def _imported(
        self,
        before: Callable[..., object],
        name: str,
        *given: Any,  # whatever it was given is handed on
        **named: Any,  # the same
    ) -> object:
        importer: object = given[0] if given else named.get("globals")
        face = self._faces.get(id(importer))
        if face is None or face is not importer:
            return before(name, *given, **named)
        _, names, level = given[1:]  # a statement hands all of it in order
        if not names or level:
            raise ImportError(f"{face.get('__name__')} may only have `from MODULE import NAME` there")
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


_NOTING: Final = _Noting()
