"""What a run consists of, however its events lie in the log: steps, turns, tool calls, and the runs that these began."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from intersession_events.basics.plain_json import JsonValue
from intersession_events.log.recorded import Recorded

FlowKind = Literal["exchange", "spawn", "run"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part, and the parts inside it. What is compared of it is by what it means, and by where it stands.

    `name` says which part of the one around it it is (`turn:2`, `sessions_send`), `likeness` tells it from others of that name.
    `sessions` are those that `fields` is about, by their roles (`who` speaks); `ids` are those that were derived for it.
    `position` is where it was complete, as far as it has come. A part without fields only holds others.
    """

    name: str
    position: int
    likeness: str = ""
    fields: Mapping[str, JsonValue] = {}
    sessions: Mapping[str, str] = {}
    ids: Mapping[str, str] = {}
    events: tuple[Recorded, ...] = ()
    parts: tuple["Part", ...] = ()


class Totals(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What came of a run in all: turns that were answered, how loop and run ended (None: not yet), what all runs of it used.

    `deliveries` counts texts by how they stand. `duration_ms` is from its first event to its last one, without what it was held.
    """

    turns: int = 0
    loop_end: str | None = None
    end: str | None = None
    tokens: int = 0
    cost_micros: int = 0
    duration_ms: int = 0
    deliveries: Mapping[str, int] = {}


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange, a spawn or a run by its parts. `lanes` says who each session is in it, so that two runs can be compared."""

    kind: FlowKind
    parts: tuple[Part, ...]
    lanes: Mapping[str, str]
    totals: Totals
