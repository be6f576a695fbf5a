"""The table of limits as the page has it, made of the table itself.

python tests/support/pages/limits.py            prints what would be written
python tests/support/pages/limits.py --write    writes docs/reference/limits.md
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is not found otherwise

from intersession_actors.rules.gate import limits
from intersession_actors.rules.gate.limits import Limit
from support.pages.prose import wrapped

LIMITS = tuple(row for row in vars(limits).values() if isinstance(row, Limit))
"""All rows, in the order of the page."""

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "limits.md"

HEAD = """# Limits

Whatever comes from outside passes one gate before an actor sees it: what people, agents, models, tools, channels,
settings and clients give. It has to be text and numbers that the log can keep, and of a bounded size.
This page is the table that the gate itself works with; the schemas of the tools say the same (`maxLength`, `minimum`,
`maximum`).

- **Callers are refused**, with a code of [the list](../errors.md) that names the field, before anything is recorded.
- **Agents and models are not**, wherever their run can go on: what is too long is cut with a marker that says so, what
  can't be recorded is spelled out (`\\udce9`), and an invalid number counts as 0. `notes` of
  [`RunCompleted`](../events.md) say what was changed. Where nothing of an answer can be kept, the run fails with a code.
- Everywhere: text is valid Unicode (no half of a surrogate pair), a number is one that JSON has (not NaN,
  not infinite) and is held to the range of its field, and names and ids have no control characters. Ids of peers, groups and threads in keys are visible,
  assigned characters in composed form (NFC); no id is repaired. Messages keep every character that is one.

The gateway's limits of connections, times and bytes on the wire are on [its page](gateway.md#what-is-waited-for-and-how-much-is-taken).
Settings have bounds of their own, which [the configuration's page](configuration.md) lists. An import leaves out lines
of more than 16 MiB and keeps those that are nested deeper than 64 levels as they are, unread.

| what | at most | of more |
| --- | --- | --- |
"""


def table() -> str:
    """Return the rows of the table."""
    return "".join(f"| {limit.what} | {_amount(limit)} | {limit.over} |\n" for limit in LIMITS)


def page() -> str:
    """Return the whole page."""
    return wrapped(HEAD + table())


def _amount(limit: Limit) -> str:
    return f"{limit.most:,} {limit.unit}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page())  # noqa: T201 - what the command is for
