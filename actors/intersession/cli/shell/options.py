"""Options that several commands share, each described once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

Store = Annotated[
    str | None,
    Parameter(help="The log: sqlite:///FILE or FILE. Default: $INTERSESSION_STORE, else ./intersession.db."),
]
Json = Annotated[bool, Parameter(help="Print one JSON document on standard output, and nothing else.")]
ConfigFile = Annotated[
    Path | None,
    Parameter(
        name="--config", help="The configuration file (JSON5) whose rules hold. Default: all defaults."
    ),
]
Agents = Annotated[
    str | None,
    Parameter(
        help="Who answers: module:NAME of a dict of agents, or of a function that takes the store's URL and "
        "returns a SessionSystem."
    ),
]
ActingAs = Annotated[
    str | None, Parameter(name="--as", help="Act as this session: see and reach what it may, and no more.")
]
AsOf = Annotated[str | None, Parameter(help="As it stood at a position (a number) or at an ISO time.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Common:
    """What every command takes."""

    store: Store = None
    json: Json = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading(Common):
    """What every command takes that reads sessions by the rules of a configuration."""

    config: ConfigFile = None


_MOST_DIGITS: Final = 18

COMMON = Common()
READING = Reading()


def place(as_of: str | None) -> int | str | None:
    """Return what was typed for `--as-of` as the tools take it: digits are a position."""
    if as_of is not None and as_of.isascii() and as_of.isdigit() and len(as_of) <= _MOST_DIGITS:
        return int(as_of)
    return as_of
