"""Imports by name: libraries that only some hosts have, whose extras errors name, and what an operator names as `module:NAME`."""

import importlib
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from intersession_events.basics.errors import MissingExtra


def imported(module: str, *, what: str, library: str, extra: str) -> ModuleType:
    """Import a module of an extra: its library, or a module of ours that needs it.

    Raises:
        MissingExtra: the library is not installed, or a version that has other parts than those that were tried.
    """
    try:
        return import_module(module)
    except ImportError as error:
        root = (error.name or "").partition(".")[0]
        if root and not root.startswith("intersession") and is_installed(root):
            library = f"an older or newer {root} than is installed ({error.msg})"
        elif not isinstance(error, ModuleNotFoundError):
            raise
        raise MissingExtra(what, library, extra) from error


def is_installed(library: str) -> bool:
    """Whether a library of an extra is installed, by its import name. Imports nothing."""
    return find_spec(library) is not None


def needed(module: str, *, what: str, library: str, extra: str) -> None:
    """Raise unless a lazily imported library is installed.

    Raises:
        MissingExtra: the library is not installed.
    """
    if not is_installed(module):
        raise MissingExtra(what, library, extra)


def named_object(spec: str) -> object:
    """Return a module's object by a name, or a dotted path of names (`module:host.agent`).

    As for `python -m`, what lies in the current folder can be named.

    Raises:
        ImportError: the text is of another form, or the module or the name can't be had; the error says why.
    """
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        raise ImportError("it is not of the form module:NAME")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        # Whatever a module of somebody's raises while it is imported is theirs to mend.
        raise ImportError(f"it can't be loaded ({type(error).__name__}: {error})") from error
    return found
