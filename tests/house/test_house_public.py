"""What `from intersession import …` gives: sorted, complete, and every error a caller may want to catch."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import intersession
import intersession_actors
import intersession_events
import intersession_projections
from intersession import IntersessionError

PACKAGES = [intersession, intersession_actors, intersession_events, intersession_projections]

INSIDE = {  # what callers see is a ToolRefused; the receipt wants to know more
    "LimitReached",
    "TargetRefused",
    # A ToolRefused as well: a host tells another one whether it may ask again.
    "InDoubt",
    # A CorruptEvent as well: `verify` says of it that it is not proven.
    "EncryptedSnapshot",
}


def modules() -> Iterator[str]:
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield found.name


def errors() -> set[type[IntersessionError]]:
    """Return every public error class of ours, wherever it lives."""
    for name in modules():
        importlib.import_module(name)
    found: set[type[IntersessionError]] = set()
    waiting: list[type[IntersessionError]] = [IntersessionError]
    while waiting:
        error = waiting.pop()
        waiting.extend(error.__subclasses__())
        ours = error.__module__.partition(".")[0] in {package.__name__ for package in PACKAGES}
        if ours and not error.__name__.startswith("_"):
            found.add(error)
    return found


def test_the_public_names_are_sorted_and_each_stands_once() -> None:
    assert intersession.__all__ == sorted(set(intersession.__all__))


def test_every_public_name_is_there() -> None:
    assert [name for name in intersession.__all__ if not hasattr(intersession, name)] == []


def faces() -> list[Path]:
    return [
        face
        for package in PACKAGES
        for face in Path(package.__file__ or "").parent.rglob("__init__.py")
        if "static" not in face.parts
    ]


def test_every_face_gives_the_names_that_it_lists() -> None:
    """Those of a face that loads them when they are asked for, too."""
    given = 0
    for name in modules():
        module = importlib.import_module(name)
        for listed in getattr(module, "__all__", ()):
            assert hasattr(module, listed), f"{name}.{listed}"
            given += 1

    assert given > len(intersession.__all__)


def test_no_face_gives_a_name_on_demand_that_one_of_its_modules_has() -> None:
    """Who imports that module puts it in the name's place."""
    taken = []
    for face in faces():
        blocks = [
            block for block in ast.parse(face.read_text(encoding="utf-8")).body if isinstance(block, ast.If)
        ]
        beside = {module.stem for module in face.parent.glob("*.py")} | {
            room.parent.name for room in face.parent.glob("*/__init__.py")
        }
        taken += [
            f"{face}: {alias.name}"
            for block in blocks
            for found in block.body
            if isinstance(found, ast.ImportFrom)
            for alias in found.names
            if alias.name in beside
        ]

    assert taken == []


def test_a_name_that_is_not_there_is_refused_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(intersession, "nothing")  # noqa: B009 - as a variable, for type checkers


def test_nothing_public_is_left_out_of_the_list() -> None:
    public = {
        name
        for name, value in vars(intersession).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("intersession")
    }

    assert public - {"on_demand"} <= set(intersession.__all__)


def test_every_error_can_be_imported_from_the_front_door() -> None:
    missing = {
        error.__name__ for error in errors() if getattr(intersession, error.__name__, None) is not error
    }

    assert missing <= INSIDE


def test_every_error_says_in_a_docstring_what_it_means() -> None:
    assert [error.__name__ for error in errors() if not error.__doc__] == []


def test_no_face_gives_a_name_that_its_home_does_not_know() -> None:
    """A name that exists as an alias alone is found by nobody who looks for its definition."""
    renamed = [
        f"{face}: {alias.name} as {alias.asname}"
        for face in faces()
        for node in ast.walk(ast.parse(face.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None and alias.asname != alias.name
    ]
    assert len(faces()) > len(PACKAGES)
    assert renamed == []
