"""A face that loads its names on demand is to everybody else what it would be if it had loaded them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

FACE = """
from typing import TYPE_CHECKING

from intersession_events.basics.faces import on_demand

if TYPE_CHECKING:
    from roomed.first import First, one
    from roomed.second import two

on_demand(globals())

__all__ = ["First", "one", "two"]
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with two modules."""
    room = tmp_path / "roomed"
    room.mkdir()
    (room / "__init__.py").write_text(FACE, encoding="utf-8")
    (room / "first.py").write_text("import roomed.third\n\nclass First: ...\n\none = 1\n", encoding="utf-8")
    (room / "second.py").write_text("from roomed import one\n\ntwo = one + 1\n", encoding="utf-8")
    (room / "third.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield room
    for name in [name for name in sys.modules if name.partition(".")[0] == "roomed"]:
        del sys.modules[name]


def loaded() -> set[str]:
    return {name.partition(".")[2] for name in sys.modules if name.startswith("roomed.")}


def run(source: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(dedent(source), "<asked>", "exec"), names)  # noqa: S102 - ours
    return names


@pytest.mark.usefixtures("room")
def test_a_name_loads_its_own_module_and_what_that_needs() -> None:
    run("import roomed")
    assert loaded() == set()

    assert run("from roomed import one")["one"] == 1
    assert loaded() == {"first", "third"}

    assert run("from roomed import two")["two"] == 2


@pytest.mark.usefixtures("room")
def test_a_star_and_dir_have_all_names_and_a_module_is_still_found() -> None:
    found = run("from roomed import *")
    assert {"First", "one", "two"} <= set(found)

    assert {"First", "one", "two"} <= set(dir(sys.modules["roomed"]))
    assert getattr(run("from roomed import third")["third"], "__name__") == "roomed.third"  # noqa: B009


@pytest.mark.usefixtures("room")
def test_a_name_that_is_not_there_is_refused_as_of_any_module() -> None:
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'roomed'"):
        run("from roomed import nothing")
    with pytest.raises(AttributeError, match="module 'roomed' has no attribute 'nothing'"):
        run("import roomed; roomed.nothing")
