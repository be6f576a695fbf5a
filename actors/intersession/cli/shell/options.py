"""Options that several commands share, each described once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

Store = Annotated[
    str | None,
    Parameter(
        help="The log: FILE, sqlite:///FILE or postgresql://…. Default: $INTERSESSION_STORE, else ./intersession.db."
    ),
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
AsOf = Annotated[
    str | None,
    Parameter(
        name=("--at", "--as-of"),
        help="As it stood at a place: a position, event:ID, an ISO time, head, RUN@start, RUN@reply, RUN@turn:3, "
        "RUN@announce or RUN@end; +N or -N behind it for steps on or back, -N alone from the head.",
    ),
]
Since = Annotated[str | None, Parameter(help="Only after a place: a position, an ISO time, RUN@start, …")]
Until = Annotated[str | None, Parameter(help="Only up to a place: a position, an ISO time, RUN@end, …")]
Cursor = Annotated[str | None, Parameter(help="The page after the one that ended with this cursor.")]


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


COMMON = Common()
READING = Reading()
