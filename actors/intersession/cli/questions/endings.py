"""The ends that `runs --end` asks for: by their codes, or by the words that `runs` and `replay` show for them."""

from collections.abc import Iterable, Mapping
from typing import Final, cast, get_args

from intersession.cli.shell import UsageError
from intersession_projections.known_names import near
from intersession_projections.wording import CLOSES, FAILURES, LOOP_ENDS, STATUSES
from intersession_projections.work import WorkEnd

CODES: Final[tuple[WorkEnd, ...]] = get_args(WorkEnd)
_SHOWN: Final[tuple[Mapping[str, str], ...]] = (
    cast("Mapping[str, str]", STATUSES),
    cast("Mapping[str, str]", FAILURES),
    cast("Mapping[str, str]", LOOP_ENDS),
    cast("Mapping[str, str]", CLOSES),
    {"ok": "answered", "error": "task failed", "timeout": "task took too long"},
    {"ok": "task done"},
)


def ends_named(typed: Iterable[str]) -> tuple[WorkEnd, ...]:
    """Return the codes of the ends that were typed.

    Raises:
        UsageError: one is neither a code nor the words of one.
    """
    return tuple(code for text in typed for code in _codes(text))


def _codes(text: str) -> list[WorkEnd]:
    wanted = " ".join(text.casefold().split())
    found: list[WorkEnd] = [
        code for code in CODES if wanted == code or wanted in map(str.casefold, in_words(code))
    ]
    if found:
        return found
    alike = near(wanted, CODES)
    meant = f"; did you mean {' or '.join(alike)}?" if alike else "."
    known = ", ".join(f"{code} ({in_words(code)[0]})" for code in CODES)
    raise UsageError(f"--end: {text[:64]!r} is no end{meant} The ends are: {known}")


def in_words(code: str) -> list[str]:
    """Return the words that an end is shown with; those of a code that ends several things are all of theirs."""
    return [words[code] for words in _SHOWN if code in words]
