"""Which questions about a log, and which of their fields, are the operator's alone: the one table, for every door (FIND-2, VIS-6). Pure.

A limited caller may ask what its own sessions answer. What is looked for in all of a run is said, or was sent, in sessions of others,
too: an answer of one run, and none without a word, would tell that somebody else has said it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.plain_json import JsonMapping

_ANY: Final = frozenset({"fork"})
"""Fields of any question: a fork holds whole sessions."""

OPERATORS: Final[Mapping[str, frozenset[str] | None]] = {
    "about": frozenset(),
    "access": None,
    "attachment": frozenset(),
    "calls": frozenset({"args", "person", "result"}),
    "compare": frozenset({"other"}),
    "deliveries": frozenset({"channel", "person", "to", "words"}),
    "diff": frozenset(),
    "event": frozenset(),
    "erasures": None,
    "events": frozenset(),
    "file": None,
    "forks": None,
    "hosts": None,
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
    "schedules": None,
    "search": frozenset(),
    "sessions": frozenset(),
    "settings": None,
    "show": frozenset(),
    "smells": frozenset(),
    "state": frozenset(),
    "steps": frozenset(),
    "told": None,
    "usage": frozenset(),
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


_FORKS: Final = "forks hold whole sessions, they are the operator's to make and to see"
METHODS: Final[Mapping[str, str]] = {
    "bundles.make": "bundles hold whole sessions, they are the operator's to make",
    "checkpoints.take": "checkpoints.take is the operator's, no limited credential may take one",
    "config.get": "config.get is the operator's, this credential is for some sessions",
    "exports.make": "exports hold whole sessions, they are the operator's to make",
    "forks.list": _FORKS,
    "forks.make": _FORKS,
    "forks.remove": _FORKS,
    "people.forget": "people.forget is the operator's, what a person said stands in all sessions",
    "retention.apply": "retention.apply is the operator's, it erases in all sessions",
    "usage.budgets": "usage.budgets is the operator's, it tells of all people",
    "status.at": "at: what stood at a place of the whole log is the operator's",
}
"""The methods that only the operator may call, or with which field (METHOD.FIELD), and the refusal of everybody else."""


def check_called(method: str, params: JsonMapping, *, is_operator: bool) -> None:
    """Check that a method, with the fields that are given, is one that its caller may call.

    Raises:
        ToolRefused: only the operator may call it so (`forbidden`).
    """
    if is_operator:
        return
    for name in (method, *(f"{method}.{field}" for field, value in params.items() if value is not None)):
        if name in METHODS:
            raise ToolRefused("forbidden", METHODS[name])
