"""What pages, docstrings and refusals name in code can be imported from where they say: a name that is misspelt or has moved fails."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.paths import ROOT

PACKAGES: Final = ("actors", "events", "projections")
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES: Final = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]

PATH: Final = re.compile(
    r"(?<![\w./-])(intersession(?:_actors|_events|_projections)?(?:\.[A-Za-z_]\w*)+)(?![\w-])"
)
IMPORT: Final = re.compile(r"\bfrom (intersession[\w.]*) import ([\w, ]+)")
FROM: Final = re.compile(r"(\w+)(?:\([^`]*\))?`[^`.]{0,40}?\bfrom `(intersession[\w.]*)`")
PYTHON: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

ELSEWHERE: Final = frozenset({"agent_framework", "agents", "langchain", "langchain_core", "langchain_openai"})
"""Frameworks that are installed for a nightly test alone, which runs their code (`tests/doors/test_frameworks.py`)."""

NO_MODULES: Final = re.compile(r"intersession\.(db|json|service|example)\b")
"""Names of files and of a domain."""


OWN_IMPORTS: Final = re.compile(r"^(?:from|import) intersession.*$", re.MULTILINE)
LIKE_A_NAME: Final = re.compile(r"[\"']intersession(\.\w+)+[\"']")


def loggers_and_attributes() -> set[str]:
    """Return what else the code calls by such a name: its loggers, and the attributes of spans and metrics."""
    return {
        found.group()[1:-1]
        for path in SOURCES
        for found in LIKE_A_NAME.finditer(path.read_text(encoding="utf-8"))
    }


def docstrings(path: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    if "intersession" not in OWN_IMPORTS.sub("", source):
        return  # most modules need not be parsed
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def texts_of(path: Path) -> str:
    """Return the prose of a page or a module, whose lines may be broken anywhere."""
    prose = path.read_text(encoding="utf-8") if path.suffix == ".md" else "\n\n".join(docstrings(path))
    return re.sub(r"[ \t]*\n[ \t]*(?=\S)", " ", prose)


def named_in(text: str) -> Iterator[str]:
    """Yield the dotted names that a text says are there."""
    yield from PATH.findall(text)
    yield from (f"{module}.{name}" for name, module in FROM.findall(text))
    for module, names in IMPORT.findall(text):
        found = (name.split(" as ")[0].strip() for name in names.split(","))
        yield from (f"{module}.{name}" for name in found if name.isidentifier() and name != "as")


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def missing(texts: Iterator[str], also: set[str]) -> list[str]:
    names = sorted({name for text in texts for name in named_in(text)})
    return [name for name in names if name not in also and not NO_MODULES.match(name) and not is_there(name)]


def test_every_name_in_the_prose_of_pages_and_docstrings_is_where_it_says() -> None:
    assert missing(map(texts_of, [*PAGES, *SOURCES]), loggers_and_attributes()) == []


def test_what_a_reader_is_told_to_import_is_looked_for_in_each_form() -> None:
    wrong = [
        "Give it `intersession_actors.outside.agents.no_agent`.",
        "It is registered as `no_agent(agent, deps=lambda turn: …)`, from `intersession`.",
        "`from intersession import SessionSystem, no_agent`",
    ]

    assert [missing(iter([text]), set()) for text in wrong] == [
        ["intersession_actors.outside.agents.no_agent"],
        ["intersession.no_agent"],
        ["intersession.no_agent"],
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of libraries that pages show
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if PYTHON.search(page.read_text(encoding="utf-8"))],
    ids=lambda page: page.name,
)
def test_every_import_of_a_page_is_one_whether_the_page_is_run_or_not(page: Path) -> None:
    """What a page shows and no test runs, since it needs a token or a server, has imports that can be run."""
    failed: list[str] = []
    for code in PYTHON.findall(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Import):
                failed += [alias.name for alias in node.names if not is_there(alias.name)]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                failed += [name for name in names if not is_there(name)]

    assert [name for name in failed if name.partition(".")[0] not in ELSEWHERE] == []
