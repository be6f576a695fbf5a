"""What is known to differ between the recorded scenarios and the same ones here, and what docs/differences.md says of it.

`python tests/support/recordings/table.py --write` plays all scenarios and writes down what differs; what was not known before gets
the name `?`, which the test refuses: replace it by a clause and a few words.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is not found otherwise

from support.pages.prose import wrapped
from support.paths import DOCS
from support.recordings.compared import Difference, found
from support.recordings.scenarios import DATA, Row, scenarios

TABLE = DATA / "differences.jsonl"
CRASHES = DATA / "crashes.json"
DIFFERENCES = DOCS / "differences.md"
HEADING = "## Recorded scenarios"
SECTION = """{heading}

{played} scenarios were recorded on the original, with a model that said what it was told, and are played here on every push
(`tests/conformance/test_recordings.py`). Compared are what the tools answered, what was said in which session and from where, what went out to
channels, and what changed in the list of sessions; ids, times, the words of refusals and fields that are ours alone are not. {same} scenarios give the
same. {differing} differ, each in some of these ways and in no other; what exactly, is in `tests/data/recordings/differences.jsonl`.
By clause, with the number of scenarios:

{counts}

{crashes} more are crashes, in which the original loses what was under way. Here it goes on: `tests/data/recordings/crashes.json` names the tests that
show it.
"""


def table() -> dict[str, Row]:
    """Return what is known, by scenario: `differences` by the name of the one they belong to, and `codes`."""
    lines = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").split("\n") if line]
    return {line["scenario"]: line for line in lines}


def names_of_differences() -> dict[str, list[str]]:
    """Return the names of the differences of each scenario that has some."""
    return {name: list(line["differences"]) for name, line in table().items() if line["differences"]}


def played() -> dict[str, Row]:
    """Return the scenarios that are played; what a crash does is shown by tests of its own (`crashes.json`)."""
    return {name: row for name, row in scenarios().items() if "config" in row}


def section() -> str:
    """Return what docs/differences.md says of all this."""
    known = names_of_differences()
    counted = Counter(name for names in known.values() for name in names)
    ways: dict[str, list[str]] = {}
    for name in sorted(counted, key=lambda name: (_place(name), name)):
        clause, _, way = name.partition(" ")
        ways.setdefault(clause, []).append(f"{way} ({counted[name]})")
    counts = "\n".join(f"- {clause}: {'; '.join(of_one)}" for clause, of_one in ways.items())
    section = SECTION.format(
        heading=HEADING,
        played=len(played()),
        same=len(played()) - len(known),
        differing=len(known),
        counts=counts,
        crashes=len(crashes()),
    )
    return wrapped(section)


def _place(name: str) -> int:
    """Return where the clause of a difference first stands on the page."""
    return DIFFERENCES.read_text(encoding="utf-8").partition(HEADING)[0].find(name.partition(" ")[0])


def crashes() -> dict[str, Row]:
    """Return what happened in each recorded crash, what happens here, and the tests that show it."""
    found: dict[str, Row] = json.loads(CRASHES.read_text(encoding="utf-8"))
    return found


def page(text: str) -> str:
    """Return docs/differences.md with its section as it has to be."""
    before, _, rest = text.partition(HEADING)
    _, heading, after = rest.partition("\n## ")
    return before + section() + heading + after


def written_again() -> None:
    """Play everything, and write down what differs; what was not known before gets the name `?`."""
    known = {name: line["differences"] for name, line in table().items()}
    lines: list[str] = []
    for name, row in played().items():
        names = {json.dumps(item): named for named, items in known.get(name, {}).items() for item in items}
        with tempfile.TemporaryDirectory() as folder:
            items, codes = found(row, Path(folder))
        grouped: dict[str, list[Difference]] = {}
        for item in items:
            grouped.setdefault(names.get(json.dumps(item), "?"), []).append(item)
        if grouped or codes:
            line: Row = {"scenario": name, "differences": dict(sorted(grouped.items())), "codes": codes}
            lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    TABLE.write_text("".join(lines), encoding="utf-8")
    DIFFERENCES.write_text(page(DIFFERENCES.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        written_again()
