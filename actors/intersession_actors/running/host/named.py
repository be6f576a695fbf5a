"""Finds what `module:NAME` means: agents, or a host, that an operator names to a command."""

import importlib
import sys
from pathlib import Path


def named_object(spec: str) -> object:
    """Return what a module has by a name, or by names below each other (`module:host.agent`).

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
