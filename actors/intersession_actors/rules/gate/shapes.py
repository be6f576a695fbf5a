"""Checks the types of values from a host's own code, before they are used."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar, cast

from intersession_actors.rules.gate.values import invalid, plain_text

T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., object])


def text_of(field: str, value: object) -> str:
    """Return a given text as a plain one; its content is checked elsewhere.

    Raises:
        ToolRefused: it is invalid.
    """
    if not isinstance(value, str):
        raise invalid(field, f"it is no text but {_kind(value)}, give one")
    return plain_text(value)


def texts_of(field: str, value: object) -> list[str]:
    """Return several given texts. A single text is not taken for its characters.

    Raises:
        ToolRefused: they are no list of texts.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise invalid(field, f"it is no list of texts but {_kind(value)}, give one, such as ['a']")
    return [
        text_of(f"{field}[{number}]", text) for number, text in enumerate(cast("Iterable[object]", value))
    ]


def path_of(field: str, value: object) -> Path:
    """Return a given path.

    Raises:
        ToolRefused: it is not a path.
    """
    if not isinstance(value, str | Path) or "\0" in str(value) or not str(value):
        raise invalid(field, f"it is no path but {_kind(value)}, give a text or a pathlib.Path")
    return Path(value)


def mapping_of(field: str, value: Mapping[str, T] | None) -> dict[str, T]:
    """Return values given by name; empty for None.

    Raises:
        ToolRefused: it is no mapping, or a name is no text.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        raise invalid(field, f"it is no mapping but {_kind(value)}, give {{name: …}}")
    return {text_of(f"{field}: a name", name): item for name, item in value.items()}


def callable_of(field: str, value: Callable[..., object] | None, *names: str) -> None:
    """Check that a callback, if there is one, can be called with one argument for each of `names`.

    Raises:
        ToolRefused: it can't.
    """
    if value is not None and not callable(value):
        raise invalid(field, f"{_kind(value)} can't be called, give a function")
    flaw = None if value is None else flaw_of_call(value, *names)
    if flaw is not None:
        raise invalid(field, flaw)


def flaw_of_call(function: Callable[..., object], *names: str) -> str | None:
    """Return why a function can't be called with one argument for each of `names`, in their order; None if it can.

    A function that does not say what it takes, such as some of those that are written in C, is taken as it is.
    """
    if hasattr(function, "__signature__"):
        return None  # somebody says it in the place of the code, as for a function that stands before another one
    try:
        # What a decorator is around may take other arguments than the decorator, which is what is called.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*names)
    except TypeError as error:
        name = getattr(function, "__qualname__", None) or type(function).__qualname__
        return (
            f"{name}{signature} can't be called: it is called as {name}({', '.join(names)}), and has {error}"
        )
    return None


def callables_of(field: str, values: Iterable[C], *names: str) -> tuple[C, ...]:
    """Return callbacks, each checked for one argument for each of `names`.

    Raises:
        ToolRefused: it is not a list of functions that can be called so.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - as above
        raise invalid(field, f"it is no list of functions but {_kind(values)}, give one, such as [function]")
    given = tuple(values)
    for number, value in enumerate(given):
        if value is None:
            raise invalid(f"{field}[{number}]", f"{_kind(value)} can't be called, give a function")
        callable_of(f"{field}[{number}]", value, *names)
    return given


def _kind(value: object) -> str:
    if value is None or (isinstance(value, str) and not value):
        return repr(value)
    return f"{'a text' if isinstance(value, str) else type(value).__name__}"
