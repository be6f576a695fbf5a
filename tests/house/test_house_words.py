"""The project speaks of itself alone: no path of one machine, nothing that only its writers could know."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.paths import ROOT

KEPT_OUT = {".git", ".venv", "dist", "build", "node_modules"}
# Data of other systems is quoted as it was found, and the checks know where they look for samples.
QUOTED = ("tests/data/", ".ci/run")

MACHINE_PATH = re.compile(r"(?<![\w.~$}\-/])/(?:tmp|work|root|farm|home|Users|opt)/[A-Za-z0-9]")
OF_ITS_MAKING = re.compile(
    r"\b(?:the brief|(?:another|other) helpers?|sub-?task \d|as instructed)\b", re.IGNORECASE
)


def tracked() -> list[str]:
    """Return the names of all files that belong to the project; without git, of all that look like it."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"],  # noqa: S607 - whichever git there is
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    except (OSError, subprocess.CalledProcessError):
        return [
            str(path)
            for path in (each.relative_to(ROOT) for each in ROOT.rglob("*") if each.is_file())
            if not any(part in KEPT_OUT or part.startswith(".") for part in path.parts)
        ]


def texts() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name in tracked():
        try:
            found.append((name, (ROOT / name).read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def findings(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts()
        if not name.startswith(QUOTED) and name != "tests/house/test_house_words.py"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_path_of_one_machine() -> None:
    assert findings(MACHINE_PATH) == []


def test_no_file_speaks_of_how_it_was_made() -> None:
    assert findings(OF_ITS_MAKING) == []


@pytest.mark.parametrize("line", ["see /tmp/notes", "cd /home/ann/project", 'open("/root/x")'])
def test_a_planted_path_is_seen(line: str) -> None:
    assert MACHINE_PATH.search(line)


@pytest.mark.parametrize(
    "line", ["sqlite:////srv/notes.db", "a/tmp/b", "$HOME/.cache", "https://x.org/work/it"]
)
def test_what_is_no_path_of_a_machine_is_let_be(line: str) -> None:
    assert not MACHINE_PATH.search(line)


# --- house dialect: a verb in a relative clause where English has a noun

DIALECT: Final = {
    r"\b(?:who|whoever|whom|the one (?:who|that)) asks\b": "the caller, the requester",
    r"(?:^|[.;] )Who(?:ever)? (?!is\b)[a-z]+s\b(?![^.]*\?)": "the one that …, a caller that …",
    r"\b(?:who|whoever) (?:waits|wants|reads|writes|looks|calls|listens|opens|follows|types)\b(?![^.]*\?)": (
        "the waiting caller, the reader, the writer"
    ),
    r"\b(?:[Nn]o|[Ss]ome|[Aa]ny|[Ee]very)body (?:who|whose)\b": "no caller that …, a caller that …",
    r"\bwhat (?:is|was) wanted\b": "the query, the matches",
    r"\b[Ww]hat is no\b": "anything that is not …, an invalid …",
    r"\bwhat (?:it|they|this|that) (?:is|are|was|were) of\b": "its flow, its session",
    r"\b[Ss]o many\b(?! that)": "the limit, a number, `seconds`",
    r"\bhow many-th\b": "the n-th",
    r"\bways? (?:there|to the (?:server|store|database)) and back\b|\bin one way to the (?:server|store)\b": "a round trip",
    r"\b(?:is|are) called (?:so|that)\b": "has that name",
    r"(?<![Tt]here )\b(?:is|are|was|were) none\b(?! (?:in|left)\b)": "is invalid, is no …, is nothing",
}
NOT_NAMES: Final = {"told", "said", "shown", "kept", "given", "asked"}
"""What was done to a thing, in the place of the thing. Events report what was done: their names may have such words."""
PAGES: Final = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
MOST_WORDS: Final = 117_000
"""How many words README and docs may have outside of blocks of code. A page that needs more room takes it from another."""


def dialect(text: str) -> Iterator[str]:
    """Yield each turn of the house dialect in a text, with what to say instead."""
    for pattern, instead in DIALECT.items():
        for found in re.finditer(pattern, text):
            yield f"{text[max(0, found.start() - 40) : found.end() + 20]!r}: say {instead}"


def prose(page: str) -> str:
    """Return a page without its code, its lines joined."""
    return " ".join(re.sub(r"^ *```.*?^ *```|`[^`\n]*`", "…", page, flags=re.MULTILINE | re.DOTALL).split())


def words_of_the_source() -> Iterator[tuple[str, str]]:
    """Yield what the packages say, with its place: docstrings, comments, and texts such as errors and help."""
    for package in ("actors", "events", "projections"):
        for path in sorted((ROOT / package).rglob("*.py")):
            place, source = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
            yield from ((f"{place}:{line}", text) for line, text in said_in(source))


def said_in(source: str) -> Iterator[tuple[int, str]]:
    """Yield the texts and comments of a source, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, " ".join(node.value.split())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def names() -> Iterator[tuple[str, str]]:
    """Yield the names of modules and types of the packages, with their places."""
    for package in ("actors", "events", "projections"):
        for path in sorted((ROOT / package).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            yield place, path.stem
            if "/facts/" not in place:
                yield from ((place, name) for name in types_in(path.read_text(encoding="utf-8")))


def types_in(source: str) -> Iterator[str]:
    """Yield the names of classes, and of aliases of types at the top of a module."""
    tree = ast.parse(source)
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names = (target.id for target in node.targets if isinstance(target, ast.Name))
            yield from (name for name in names if not name.isupper())


def words_of(name: str) -> set[str]:
    """Return the words that a name is made of."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_speaks_the_house_dialect(page: Path) -> None:
    assert list(dialect(prose(page.read_text(encoding="utf-8")))) == []


@pytest.mark.ci
def test_no_docstring_comment_error_or_help_speaks_the_house_dialect() -> None:
    assert [f"{place}: {turn}" for place, text in words_of_the_source() for turn in dialect(text)] == []


@pytest.mark.ci
def test_modules_and_types_are_named_after_things() -> None:
    assert [f"{place}: {name}" for place, name in names() if words_of(name) & NOT_NAMES] == []


@pytest.mark.parametrize("name", ["told", "fork_told", "ForkTold", "_Kept", "GivenUp"])
def test_a_planted_name_that_is_no_thing_is_seen(name: str) -> None:
    assert words_of(name) & NOT_NAMES


@pytest.mark.parametrize("name", ["summary", "ForkSummary", "toolbox", "Shownness"])
def test_a_name_of_a_thing_is_let_be(name: str) -> None:
    assert not words_of(name) & NOT_NAMES


@pytest.mark.parametrize(
    "line",
    [
        "Return what who asks sees.",
        "The one who asks waits.",
        "It goes on. Who waits longer is told so.",
        "Yield what is wanted.",
        "Wake so many of those who wait.",
        "In one way there and back.",
        "What is no text, and is none, is refused.",
        "Wake whoever waits.",
        "Somebody who asks again gets it.",
        "So many streams are asked for.",
        "The how many-th call it is.",
        "None where nothing is called that.",
        "Read it with what it is of.",
    ],
)
def test_a_planted_turn_of_the_dialect_is_seen(line: str) -> None:
    assert list(dialect(line))


@pytest.mark.parametrize(
    "line",
    ["Who sent it?", "There is none.", "so many that it ends", "It is None.", "There is none of them."],
)
def test_plain_english_is_let_be(line: str) -> None:
    assert list(dialect(line)) == []


def test_the_pages_have_no_more_words_than_a_reader_has_time_for() -> None:
    pages = [page.read_text(encoding="utf-8") for page in PAGES if page.name != "CHANGELOG.md"]
    outside = (re.sub(r"^ *```.*?^ *```", "", page, flags=re.MULTILINE | re.DOTALL) for page in pages)
    words = sum(1 for page in outside for word in page.split() if re.search(r"[^\W_]", word))

    assert words <= MOST_WORDS


def test_the_next_release_is_told_in_200_lines() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = re.search(r"^## \[Unreleased\]\n(.*?)^## \[", changelog, re.MULTILINE | re.DOTALL)

    assert unreleased is not None
    assert len(unreleased[1].splitlines()) <= 230
