"""Whether a budget has anything left for what a person or a caller asks for: pure (LIMIT)."""

from collections.abc import Sequence

import msgspec

from intersession_actors.rules.errors import Known, Question
from intersession_events.facts import ready


@ready
class Counted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A limit that holds for a request, and what is used of it: `setting` names it, `of` is whose it is."""

    setting: str
    of: str
    allowed: int
    used: int = 0


class Spend(Question, frozen=True, kw_only=True):
    """Begin a run in a session, which begins a chain."""

    target: str


class Spending(Known, frozen=True, kw_only=True):
    """The inputs of that judgement: the limits that hold for it."""

    counted: tuple[Counted, ...] = ()


def judge_spending(counted: Sequence[Counted]) -> Counted | None:
    """Return the first limit of which all is used; None if each has something left (LIMIT-1)."""
    return next((one for one in counted if one.used >= one.allowed), None)


def words_of(full: Counted) -> str:
    """Return a refusal in words for callers; whose budget it is, they know."""
    return f"{full.setting} is {full.allowed} and {full.used} are used, try again later"
