"""Writes the page of what can be done to a log with `sqlite3`, from the table that the test goes through.

python tests/support/pages/tampering.py --write
"""

import sys
from collections.abc import Sequence

from support.file_tampering import FILES, KEPT
from support.fork_tampering import FORKS
from support.paths import DOCS
from support.tampering import EVENTS, IMPORTED, TABLES, VIEWS, WORDS, Kind

PAGE = DOCS / "explanation" / "tampering.md"

HEAD = """# What tampering is found by what

Somebody who can write to the file can change it with `sqlite3`. Each way below is tried by a test on the log of a
system that stopped, with a checkpoint at its end (`tests/system/test_tampering.py`, from which this page is made:
`python tests/support/pages/tampering.py --write`). What is behind the last checkpoint is proven by the chains of its
streams alone: order between streams, whole streams and their ends are named as not proven there.

"Published" is `verify` with a checkpoint that was published before, or an exported head; "signed" is `verify` with the
key that signs the log's checkpoints ([audit and verify](../howto/audit-and-verify.md)). Where the log alone does not
show it, `verify` says so in words before it is tried. What is found alone is found with those as well.
"""


def page() -> str:
    """Return the page."""
    return HEAD + "".join(
        f"\n## {title}\n\n| done | found by | as | published | signed |\n| --- | --- | --- | --- | --- |\n{_rows(kinds)}"
        for title, kinds in (
            ("Events", EVENTS),
            ("The tables beside them", TABLES),
            ("The file, its pages and its schema", FILES),
            ("Views", VIEWS),
            ("What was erased, and notes", KEPT),
            ("What was imported", IMPORTED),
            ("Forks, without the log that they were made of", FORKS),
        )
    )


def _rows(kinds: Sequence[Kind]) -> str:
    return "".join(
        f"| {kind.what} | {WORDS[kind.by]} | {_as(kind)} | {_yes(kind.by != 'unproven')} | "
        f"{_yes(kind.by != 'unproven' and kind.signed)} |\n"
        for kind in kinds
    )


def _yes(found: bool) -> str:
    return "found" if found else "not proven"


def _as(kind: Kind) -> str:
    if kind.by == "unproven":
        return f'"{kind.finds} …"'
    return f"`{kind.finds}`" if kind.finds else "it can't be read as it is"


if __name__ == "__main__" and "--write" in sys.argv:
    PAGE.write_text(page(), encoding="utf-8")
