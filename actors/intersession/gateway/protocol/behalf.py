"""What a host that follows the log asks of its writer's gateway: a call for a caller that it has admitted, and receipts (DOOR-2)."""

from typing import Annotated, Final

import msgspec

from intersession_actors.calls.service.callers import Caller
from intersession_actors.rules.gate.limits import KeyText
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import AccessRecorded, ready

PERFORM: Final = "door.perform"
RECEIPTS: Final = "door.receipts"

MOST_RECEIPTS: Final = 500
"""Receipts in one request."""

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
_Globs = Annotated[tuple[_Name, ...], msgspec.Meta(max_length=1_000)]
_Number = Annotated[str, msgspec.Meta(min_length=16, max_length=64)]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    pass


class OnBehalf(_Strict, frozen=True, kw_only=True):
    """A caller: a session (`key`), or the operator or a credential, and the sessions within its reach."""

    name: _Name
    act_as: _Globs
    key: KeyText | None = None
    credential: _Name | None = None
    of_agent: bool = False
    sees: _Globs = ()

    @classmethod
    def of(cls, caller: Caller) -> "OnBehalf":
        """Return a caller as it is named to the writer."""
        return cls(**{name: getattr(caller, name) for name in cls.__struct_fields__})

    def as_caller(self, door: str) -> Caller:
        """Return the caller, whom a door has admitted."""
        return Caller(**{name: getattr(self, name) for name in self.__struct_fields__}, door=door)


@ready
class PerformParams(_Strict, frozen=True, kw_only=True):
    """`door.perform`: a method, or `tools.invoke` with `{name, args}`. `number` is the call's own; `again`: it was sent before, `waitedMs` ago."""

    caller: OnBehalf
    method: _Name
    params: JsonObject
    number: _Number
    again: bool = False
    waited_ms: Annotated[int, msgspec.Meta(ge=0)] = 0


class Receipt(_Strict, frozen=True, kw_only=True):
    """An access receipt: the requester's stream, the event, and what was judged. `id` is the event's own."""

    id: _Number
    time: Annotated[int, msgspec.Meta(ge=0)]
    event: AccessRecorded
    correlation: _Name | None = None
    decision: Annotated[str, msgspec.Meta(max_length=65_536)] = ""


@ready
class ReceiptsParams(_Strict, frozen=True, kw_only=True):
    """`door.receipts`."""

    receipts: Annotated[tuple[Receipt, ...], msgspec.Meta(max_length=MOST_RECEIPTS)]
