"""Which questions about a log, and which of their fields, are the operator's alone: the one table, for every door (FIND-2, VIS-6). Pure.

A limited caller may ask what its own sessions answer. What is looked for in all of a run is said, or was sent, in sessions of others,
too: an answer of one run, and none without a word, would tell that somebody else has said it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from intersession_actors.rules.errors import ToolRefused

_ANY: Final = frozenset({"fork"})
"""Fields of any question: a fork holds whole sessions."""

OPERATORS: Final[Mapping[str, frozenset[str] | None]] = {
    "about": frozenset(),
    "calls": frozenset({"args"}),
    "compare": frozenset({"other"}),
    "deliveries": frozenset({"channel", "person", "to", "words"}),
    "diff": frozenset(),
    "event": frozenset(),
    "events": frozenset(),
    "file": None,
    "forks": None,
    "imports": None,
    "integrity": None,
    "lens": frozenset(),
    "messages": frozenset({"person"}),
    "notes": frozenset(),
    "origin": frozenset(),
    "place": frozenset(),
    "replay": None,
    "reveal": None,
    "rows": frozenset(),
    "run": frozenset(),
    "runs": frozenset({"channel", "person", "words"}),
    "search": frozenset(),
    "sessions": frozenset(),
    "settings": None,
    "show": frozenset(),
    "smells": frozenset(),
    "state": frozenset(),
    "steps": frozenset(),
    "why": frozenset(),
}
"""The fields of each question that only the operator may give; None: the whole question is the operator's."""


def check_asked(question: str, given: Iterable[str], *, is_operator: bool) -> None:
    """Refuse a question that its caller may not ask with these fields. One that is missing in the table is the operator's.

    Raises:
        ToolRefused: only the operator may ask so (`forbidden`).
    """
    if is_operator:
        return
    fields = OPERATORS.get(question)
    if fields is None:
        raise ToolRefused("forbidden", f"{question}: only the operator asks that, it tells of all sessions")
    for field in given:
        if field in fields or field in _ANY:
            raise ToolRefused("forbidden", f"{field}: only the operator asks so, leave it out")
