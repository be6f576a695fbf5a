"""Writes the page of what can be done to a log with `sqlite3`, from the table that the test goes through.

python tests/support/pages/tampering.py --write
"""

import sys
from collections.abc import Sequence

from support.bundle_tampering import EDITED, HASHED, REDACTED, SIGNED, BundleBy, BundleKind
from support.file_tampering import FILES, KEPT
from support.fork_tampering import FORKS
from support.pages.prose import wrapped
from support.paths import DOCS
from support.tampering import EVENTS, IMPORTED, TABLES, VIEWS, By, Kind

PAGE = DOCS / "explanation" / "tampering.md"

HEAD = """# What tampering is found by what

Write access to the file is enough to change it with `sqlite3`. Each way below is tried by a test on the log of a
system that stopped, with a checkpoint at its end (`tests/system/test_tampering.py`, from which this page is made:
`python tests/support/pages/tampering.py --write`). What is behind the last checkpoint is proven by the chains of its
streams alone: order between streams, whole streams and their ends are named as not proven there.

"Published" is `verify` with a checkpoint that was published before, or an exported head; "signed" is `verify` with the
key that signs the log's checkpoints ([audit and verify](../howto/audit-and-verify.md)). Where the log alone does not
show it, `verify` says so in words before it is tried. What is found by the log alone is found with those as well.
"""

WHERE: dict[By, str] = {
    "opening": "Refused by a writer, found by `verify`",
    "verify": "Found by `verify`",
    "repaired": "Found by `verify`, built anew by the next writer",
    "head": "Not proven by the log alone",
    "unproven": "Named as not proven",
}

COPIES = """
## Copies and backups

A [copy](../howto/backup-and-upgrade.md) is a log: `verify` and `restore` find in it what is found in one. When it is
continued, none of the ways above that change events of its log reaches it.

- **Refused by `backup`**, `log_rewritten`, and the copy stays as it was: what cuts the end off, renumbers events, puts one
  behind the last, or computes hashes again, with the old key too.
- **Not taken over**, and found by `verify` in the log: all others.
"""

BUNDLES = """
## Bundles

Each way is tried on a [bundle](../howto/evidence.md) (`tests/system/test_bundles_tampered.py`). What takes a key or what
was published is named as not proven without it. Besides, a byte of a zip, or of an entry in a folder, is flipped in 1,000
places.
"""

BY: dict[BundleBy, str] = {
    "alone": "Found by `verify.py`",
    "trusted": "Found with `--trust`",
    "published": "Found with `--published`",
    "unproven": "Named as not proven",
}


def page() -> str:
    """Return the page."""
    return wrapped(
        HEAD
        + "".join(
            f"\n## {title}\n\n{_groups(kinds)}"
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
        + COPIES
        + BUNDLES
        + "".join(
            f"\n### {title}\n\n{_groups(kinds)}"
            for title, kinds in (
                ("With an editor, or an archiver", EDITED),
                ("By whoever can hash, before a signed checkpoint", HASHED),
                ("Of redacted editions, by whoever can hash", REDACTED),
                ("By whoever has the old key", SIGNED),
            )
        )
    )


def _groups(kinds: Sequence[Kind] | Sequence[BundleKind]) -> str:
    """Return an item for each way to be found, with all that is found so."""
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(_found(kind), []).append(kind.what)
    return "".join(f"- {found}: {'; '.join(whats)}.\n" for found, whats in groups.items())


def _found(kind: Kind | BundleKind) -> str:
    finds = f"`{kind.finds}`" if kind.finds else "unreadable as it is"
    if isinstance(kind, BundleKind):
        if kind.by == "unproven":
            return f'**{BY[kind.by]}**, "{kind.finds} …"'
        return f"**{BY[kind.by]}**, {finds}"
    match kind.by:
        case "unproven":
            return f'**{WHERE[kind.by]}**, "{kind.finds} …"'
        case "head":
            return (
                f"**{WHERE[kind.by]}**; {finds} with what was published{' or signed' if kind.signed else ''}"
            )
        case _:
            return f"**{WHERE[kind.by]}**, {finds}"


if __name__ == "__main__" and "--write" in sys.argv:
    PAGE.write_text(page(), encoding="utf-8")
