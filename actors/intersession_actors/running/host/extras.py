"""Imports libraries that only some hosts have; a missing one is an error that names the extra to install."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from intersession_events.basics.errors import MissingExtra


def imported(module: str, *, what: str, library: str, extra: str) -> ModuleType:
    """Import what belongs to an extra: its library, or a module of ours that needs it.

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
    """Whether a library of an extra is there, by the name it is imported by. Imports nothing."""
    return find_spec(library) is not None


def needed(module: str, *, what: str, library: str, extra: str) -> None:
    """Refuse to go on without what is imported when it is first used.

    Raises:
        MissingExtra: the library is not installed.
    """
    if not is_installed(module):
        raise MissingExtra(what, library, extra)
