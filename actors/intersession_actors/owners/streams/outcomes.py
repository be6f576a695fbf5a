"""How a command ends: accepted with its events, or refused with a reason. Doors wait for one of the two."""

from collections.abc import Callable
from typing import Any

import msgspec

from intersession_actors.rules.errors import RefusalCode
from intersession_actors.rules.policy.chain import Tripped
from intersession_events.log.recorded import Recorded

OnAnswer = Callable[[Any], None]  # told `Accepted | Refused`, and what else the commands of an actor end in
"""Where a door waits for the outcome of a command. It must not block."""


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """A command is durable. `recorded` are its events; `again` says that it had been accepted before."""

    recorded: tuple[Recorded, ...]
    again: bool = False


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A command was refused and left nothing behind. `code` is one of `docs/errors.md`.

    `tripped` is the guard over a causal chain that refused it, where one did (LOOP-5).
    """

    code: RefusalCode
    error: str
    tripped: Tripped | None = None
