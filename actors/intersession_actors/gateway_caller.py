"""Who calls a method of the gateway: the operator, or a credential that stands for some sessions only (VIS-6)."""

from typing import Final

import msgspec

from intersession_actors.access_rules import may_act_as, not_visible
from intersession_actors.errors import ToolRefused
from intersession_events.keys import SessionKey

EVERY: Final = "*"


class GatewayCaller(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is what idempotency keys are kept under, `act_as` globs over the canonical keys it reaches."""

    name: str = "operator"
    act_as: tuple[str, ...] = (EVERY,)

    @property
    def is_operator(self) -> bool:
        """Whether every session is within reach, and so what belongs to none."""
        return EVERY in self.act_as

    def reaches(self, key: SessionKey) -> bool:
        """Whether a session is within reach."""
        return self.is_operator or may_act_as(self.act_as, key)

    def check(self, key: SessionKey, given: str) -> None:
        """Refuse a session beyond reach, in the same words as one that is not there.

        Raises:
            ToolRefused: `not_visible`.
        """
        if not self.reaches(key):
            raise ToolRefused("not_visible", not_visible(given))


OPERATOR: Final = GatewayCaller()
"""The host's own code, the command line, the shared token."""
