"""Checks that what a host's own code gives is of the kind that is asked for, before anything is done with it."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar, cast

from intersession_actors.gate.numbers import invalid
from intersession_actors.gate.values import plain_text

T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., object])


def text_of(field: str, value: object) -> str:
    """Return a text that was given, as a plain one; what is in it is for others to judge.

    Raises:
        ToolRefused: it is none.
    """
    if not isinstance(value, str):
        raise invalid(field, f"it is no text but {_kind(value)}, give one")
    return plain_text(value)


def texts_of(field: str, value: object) -> list[str]:
    """Return texts that were given together. A text by itself is not taken for its characters.

    Raises:
        ToolRefused: they are no list of texts.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise invalid(field, f"it is no list of texts but {_kind(value)}, give one, such as ['a']")
    return [
        text_of(f"{field}[{number}]", text) for number, text in enumerate(cast("Iterable[object]", value))
    ]


def path_of(field: str, value: object) -> Path:
    """Return the path that was given.

    Raises:
        ToolRefused: it is none, or can't be one.
    """
    if not isinstance(value, str | Path) or "\0" in str(value) or not str(value):
        raise invalid(field, f"it is no path but {_kind(value)}, give a text or a pathlib.Path")
    return Path(value)


def mapping_of(field: str, value: Mapping[str, T] | None) -> dict[str, T]:
    """Return what was given by name; nothing for None.

    Raises:
        ToolRefused: it is no mapping, or a name is no text.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        raise invalid(field, f"it is no mapping but {_kind(value)}, give {{name: …}}")
    return {text_of(f"{field}: a name", name): item for name, item in value.items()}


def callable_of(field: str, value: Callable[..., object] | None) -> None:
    """Check that what is to be called later can be called; None is nothing.

    Raises:
        ToolRefused: it can't.
    """
    if value is not None and not callable(value):
        raise invalid(field, f"{_kind(value)} can't be called, give a function")


def callables_of(field: str, values: Iterable[C]) -> tuple[C, ...]:
    """Return what is to be called later, each of it.

    Raises:
        ToolRefused: it is no list of what can be called.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - as above
        raise invalid(field, f"it is no list of functions but {_kind(values)}, give one, such as [function]")
    given = tuple(values)
    for number, value in enumerate(given):
        if not callable(value):
            raise invalid(f"{field}[{number}]", f"{_kind(value)} can't be called, give a function")
    return given


def _kind(value: object) -> str:
    if value is None or (isinstance(value, str) and not value):
        return repr(value)
    return f"{'a text' if isinstance(value, str) else type(value).__name__}"
