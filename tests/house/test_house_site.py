"""The documentation as a site: every page is in its navigation, and it builds without a warning. Help speaks to people."""

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from cyclopts import App
from rich.console import Console

from intersession.cli.app import app
from support.pages import site
from support.paths import DOCS, ROOT

NAMED = re.compile(r"[\w/-]+\.md\b")
CLAUSE = re.compile(r"\b[A-Z]{3,6}-[0-9]+\b")


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    _, _, navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")

    assert sorted(NAMED.findall(navigation)) == sorted(
        page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")
    )


def test_the_changelog_is_a_page_of_the_site_and_its_links_lead_to_pages() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="changelog.md"))
    other = SimpleNamespace(file=SimpleNamespace(src_uri="faq.md"))

    shown = site.on_page_markdown("a stub", page=page, config=None, files=None)

    assert "hooks: [tests/support/pages/site.py]" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert site.on_page_markdown("its own", page=other) == "its own"
    assert shown.startswith("# Changelog\n")
    assert "## [Unreleased]" in shown
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", shown) if "://" not in link]
    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []


@pytest.mark.nightly
@pytest.mark.skipif(find_spec("material") is None, reason="the group docs is not installed")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "howto" / "deploy" / "index.html").exists()
    assert "Unreleased" in (tmp_path / "site" / "changelog" / "index.html").read_text(encoding="utf-8")


def commands(of: App, name: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield name
    for word in of:
        if not word.startswith("-"):
            yield from commands(of[word], (*name, word))


def test_no_help_speaks_of_clauses() -> None:
    """D11: the ids of clauses are for those who build it."""
    shown: dict[str, list[str]] = {}
    for command in commands(app):
        out = io.StringIO()
        app.help_print(list(command), console=Console(file=out, width=200))
        assert "Usage:" in out.getvalue()
        shown[" ".join(command)] = CLAUSE.findall(out.getvalue())

    assert len(shown) > 12
    assert {command: found for command, found in shown.items() if found} == {}
