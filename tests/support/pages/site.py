"""Puts the changelog, which lies above the pages, on the site: a hook of `mkdocs.yml`. Standard library alone."""

from pathlib import Path
from typing import Any

CHANGELOG = Path(__file__).parents[3] / "CHANGELOG.md"


# `Any`: what the site is built with is not installed where this is checked.
def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return what a page says: for `changelog.md` what the changelog does, with its links as they are from among the pages."""
    if page.file.src_uri != "changelog.md":
        return markdown
    return CHANGELOG.read_text(encoding="utf-8").replace("](docs/", "](")
