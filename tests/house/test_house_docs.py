"""What the documentation shows is so: its Python runs, its links lead somewhere, its commands are those of .ci/run.

Every ```python block of a page is run, in order, in one namespace and a folder of its own. A block that can't be is
marked by the line `<!-- not run: why -->` above it. Lines `# ->` after a print say what it prints.
"""

import contextlib
import io
import re
import sqlite3
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import intersession
from intersession import MemoryChannel, SessionSystem, Turn
from intersession_actors.calls.tools.toolbox import Tools
from support.pages.prose import long_lines, wrapped
from support.paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?P<not_run><!-- not run: (?P<why>[^>]+) -->\n+)?^```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
README_COMMANDS = re.findall(
    r"^```sh\n(.+)\n```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
)


class Block(NamedTuple):
    """A piece of code on a page."""

    line: int
    code: str


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(text.count("\n", 0, found.start("code")), found["code"])
        for found in BLOCK.finditer(text)
        if found["language"] == language and found["not_run"] is None
    ]


def expected(code: str) -> list[str]:
    """Return what a block's comments say it prints."""
    return [line.strip() for line in re.findall(r"# -> (.*)$", code, re.MULTILINE)]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with contextlib.chdir(tmp_path):
        yield tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_the_python_of_a_page_runs_and_prints_what_it_says(page: Path, folder: Path) -> None:
    del folder
    # A module, so that annotations of the page's own classes resolve.
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page, "python"):
        printed = io.StringIO()
        code = compile("\n" * block.line + block.code, name_of(page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)  # noqa: S102 - the page's own code is what is tested
        for line in expected(block.code):
            assert line in printed.getvalue(), f"{name_of(page)}:{block.line} printed {printed.getvalue()!r}"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sql")], ids=name_of)
def test_the_sql_of_a_page_finds_something_in_the_log_that_its_python_made(page: Path, folder: Path) -> None:
    for block in blocks(page, "python"):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(block.code, {"__name__": "__main__"})  # noqa: S102 - the page's own code is what is tested
    (database,) = folder.glob("*.db")
    with contextlib.closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as log:
        for block in blocks(page, "sql"):
            assert log.execute(block.code).fetchall(), block.code


def test_a_block_is_found_and_one_that_is_not_run_is_not(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\na = 1\n```\n\n<!-- not run: no network -->\n```python\nb = 2\n```\n", "utf-8")

    assert [block.code for block in blocks(page, "python")] == ["a = 1\n"]


# --- links

LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as they are made by those who show Markdown."""
    headings = HEADING.findall(
        re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken: list[str] = []
    for link in LINK.finditer(re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))):
        path, _, anchor = link["target"].partition("#")
        if "://" in link["target"] or link["target"].startswith("mailto:"):
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link["target"])

    assert not broken


def test_every_page_can_be_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / link["target"].partition("#")[0]).resolve() for link in LINK.finditer(index)}

    missing = [name_of(page) for page in (ROOT / "docs").rglob("*.md") if page.resolve() not in linked]

    assert missing == ["docs/index.md"]


# --- commands


def test_the_readme_has_two_commands_of_one_line_each() -> None:
    assert len(README_COMMANDS) == 2


def test_what_is_checked_is_the_second_command_of_the_readme_word_for_word() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert [line.strip() for line in script.splitlines()].count(README_COMMANDS[1]) == 1


def test_the_check_can_be_run() -> None:
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_every_command_is_in_the_reference_of_the_command_line() -> None:
    from intersession.cli.app import app  # noqa: PLC0415 - only this test needs the command line

    reference = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")

    missing = [name for name in app if not name.startswith("-") and f"intersession {name}" not in reference]

    assert not missing


def test_the_changelog_has_the_version_that_is_being_made() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

    assert version in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_line_of_the_changelog_stands_twice() -> None:
    """A merge that keeps the lines of both sides doubles what one of them has moved."""
    lines = Counter((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines())

    assert [line for line, times in lines.items() if line.startswith("- ") and times > 1] == []


# --- the reference of the Python API

PYTHON = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")


NOT_PROMISED = {
    "service",
    "start",
    "begin_numbered",
}  # for those who build another door; done by the constructor


def named(name: str) -> bool:
    """Whether the page has a name in code, alone or called."""
    return (
        re.search(
            rf"`[^`]*(?<![\w.]){re.escape(name)}(?!\w)[^`]*`|^## .*{re.escape(name)}", PYTHON, re.MULTILINE
        )
        is not None
    )


def test_every_public_name_is_in_the_reference() -> None:
    assert [name for name in intersession.__all__ if not named(name)] == []


@pytest.mark.parametrize(
    "shape", [SessionSystem, Tools, Turn, MemoryChannel], ids=lambda shape: shape.__name__
)
def test_every_public_member_is_in_the_reference(shape: type) -> None:
    members = {
        name
        for each in shape.__mro__
        if each.__module__.startswith("intersession")
        for name in (*vars(each), *getattr(each, "__annotations__", {}))
    } - NOT_PROMISED

    assert [name for name in sorted(members) if not name.startswith("_") and not named(name)] == []


def test_every_method_of_the_gateway_is_in_the_reference() -> None:
    with SessionSystem(":memory:") as system:
        assert [name for name in system.gateway.methods if not named(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_line_of_prose_is_longer_than_120_characters(page: Path) -> None:
    """`python tests/support/pages/prose.py PAGE` wraps a page. Tables, code and addresses may be longer."""
    assert long_lines(page.read_text(encoding="utf-8")) == []


def test_a_page_is_wrapped_where_its_prose_is_too_long_and_nowhere_else() -> None:
    long = " ".join(["word"] * 40)
    kept = f"# {long}\n\n| {long} |\n\n```sh\n{long}\n```\n\nhttps://x.example/{'a' * 200}\n\nshort\nlines\n"
    text = f"{kept}\n1. {long}\n   and more\n2. short\n"

    lines = wrapped(text).split("\n")

    assert wrapped(text).startswith(kept)
    assert [number for number, _ in long_lines(text)] == [kept.count("\n") + 2]
    assert long_lines(wrapped(text)) == []
    assert lines[-4].startswith("1. word")
    assert lines[-3].startswith("   word")
    assert " ".join(wrapped(text).split()) == " ".join(text.split())


ANOTHER_GATEWAY = re.compile(
    r"gateway.{0,2}s? methods?\b|methods? of (?:the|our) gateway|(?:original|OpenClaw).s gateway",
    re.IGNORECASE,
)


def test_gateway_means_the_network_door_everywhere() -> None:
    """Before: it meant three things: the network door, the methods in Python, and OpenClaw's server."""
    sources = [
        path for part in ("actors", "events", "projections") for path in sorted((ROOT / part).rglob("*.py"))
    ]
    found = [
        f"{name_of(page)}: {' '.join(met[0].split())}"
        for page in [*PAGES, *sources]
        for met in ANOTHER_GATEWAY.finditer(" ".join(page.read_text(encoding="utf-8").split()))
    ]

    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert found == []
    assert len(re.findall(r"^\| gateway\b", glossary, re.MULTILINE)) == 1
