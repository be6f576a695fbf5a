"""What the pages promise, sentence by sentence, and the tests that would be red if it were false.

    python tests/support/pages/promises.py            prints which sentences of a page are not judged yet
    python tests/support/pages/promises.py --write    takes new and changed sentences into the lists, as `?`

Each page of `PAGES` has a list in `tests/data/promises/`, in the order of the page. A line there is

    = SENTENCE      a promise; the lines behind it, indented, name its tests, as `tests/…/test_x.py::test_y`
    - SENTENCE      no promise: advice, a definition, an example, the announcement of what follows
    ? SENTENCE      not judged yet; `tests/house/test_house_promises.py` is red until it is

A sentence that was changed comes back as `?` with the tests of the one that it resembles most, to be read again.
"""

import ast
import difflib
import functools
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is not found otherwise

from support.paths import ROOT

PAGES: Final = (
    "README.md",
    "docs/reliability.md",
    "docs/howto/audit-and-verify.md",
    "docs/howto/retention.md",
    "docs/howto/security.md",
    "docs/howto/serve.md",
    "docs/howto/time-travel.md",
)
COMMAND: Final = "python tests/support/pages/promises.py --write"
LISTS: Final = ROOT / "tests" / "data" / "promises"

_FENCED: Final = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$", re.MULTILINE | re.DOTALL)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG: Final = re.compile(r"</?(?:picture|source|img)[^>]*>", re.DOTALL)
_PICTURE: Final = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_ITEM: Final = re.compile(r"^ *(?:[-*+]|\d+\.) +")
_RULER: Final = re.compile(r"\|[-:| ]+\|")
_END: Final = re.compile(r"(?<=[.!?]) +(?=[A-Z`“\"(0-9])")
_LETTERS: Final = re.compile(r"[A-Za-z]{2}")
_LIKE: Final = 0.6
"""How much alike two sentences have to be for the tests of one to be offered to the other."""


@dataclass
class Judged:
    """A sentence of a page with its verdict (`=`, `-` or `?`) and the tests that hold it."""

    verdict: str
    sentence: str
    tests: list[str]


def sentences(text: str) -> list[str]:
    """Return the sentences of a page in their order: of paragraphs, items and rows of tables, without code and links' targets."""
    for pattern in (_FENCED, _COMMENT, _TAG, _PICTURE):
        text = pattern.sub("\n", text)
    text = _LINK.sub(r"\1", text).replace("**", "")
    found: list[str] = []
    paragraph: list[str] = []
    lines = [*text.split("\n"), ""]

    def end() -> None:
        found.extend(part.strip() for part in _END.split(" ".join(paragraph)) if _LETTERS.search(part))
        paragraph.clear()

    for number, line in enumerate(lines):
        if line.startswith("|"):
            end()
            follows = lines[number + 1]
            if not _RULER.fullmatch(line) and not _RULER.fullmatch(follows):
                cells = [cell.strip() for cell in line.strip("|").split("|")]
                found.append(" | ".join(cell for cell in cells if cell))
        elif not line.strip() or line.lstrip().startswith("#"):
            end()
        else:
            if _ITEM.match(line):
                end()
            paragraph.append(_ITEM.sub("", line, count=1).strip())
    return found


def list_of(page: str) -> Path:
    """Return where the sentences of a page are judged."""
    return LISTS / f"{Path(page).stem.lower()}.txt"


def judged(page: str) -> list[Judged]:
    """Return the sentences of a page as its list has them."""
    found: list[Judged] = []
    path = list_of(page)
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        if line.startswith("  "):
            found[-1].tests.append(line.strip())
        elif line:
            found.append(Judged(line[0], line[2:], []))
    return found


@functools.cache
def tests() -> frozenset[str]:
    """Return the names of all tests, as `tests/…/test_x.py::test_y`, read from the sources."""
    found: set[str] = set()

    def look(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                look(child, f"{name}::{child.name}")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and child.name.startswith("test"):
                found.add(f"{name}::{child.name}")
            elif isinstance(child, ast.Assign) and ast.unparse(child.value).endswith(".TestCase"):
                found.add(f"{name}::{ast.unparse(child.targets[0])}")  # a state machine of hypothesis

    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        look(ast.parse(path.read_text(encoding="utf-8")), path.relative_to(ROOT).as_posix())
    return frozenset(found)


def renewed(page: str) -> list[Judged]:
    """Return the list of a page as it stands now: what is judged stays, what is new or changed is `?`."""
    before = judged(page)
    known = {entry.sentence: entry for entry in before}
    now = sentences((ROOT / page).read_text(encoding="utf-8"))
    gone = [sentence for sentence in known if sentence not in set(now)]
    found: list[Judged] = []
    for sentence in now:
        if entry := known.get(sentence):
            found.append(entry)
        else:
            alike = difflib.get_close_matches(sentence, gone, n=1, cutoff=_LIKE)
            found.append(Judged("?", sentence, known[alike[0]].tests if alike else []))
    return found


def written(entries: list[Judged]) -> str:
    """Return a list as its file has it."""
    lines = [
        line for one in entries for line in (f"{one.verdict} {one.sentence}", *(f"  {t}" for t in one.tests))
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for each in PAGES:
        entries = renewed(each)
        if "--write" in sys.argv[1:]:
            list_of(each).write_text(written(entries), encoding="utf-8")
        for entry in entries:
            if entry.verdict == "?":
                sys.stdout.write(f"{each}: {entry.sentence}\n")
