"""Who calls a method of the gateway: the operator, or a credential that stands for some sessions only (VIS-6)."""

from typing import Final

import msgspec

from intersession_actors.errors import ToolRefused
from intersession_actors.policy import Requester, may_act_as, not_visible
from intersession_actors.service.receipts import AccessSummary
from intersession_events.keys import SessionKey

EVERY: Final = "*"
MOST_GIVEN: Final = 512
"""Characters of a refused target that a receipt keeps."""


_CREDENTIAL: Final = "credential:"


class Judged:
    """What one call saw and was denied, for its receipt (VIS-4)."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.denied = 0
        self.denied_targets: list[tuple[str, str]] = []


class GatewayCaller(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is what idempotency keys are kept under, `act_as` globs over the canonical keys it reaches.

    `judged` takes down what one call sees and is denied, while one lasts.
    """

    name: str = "operator"
    act_as: tuple[str, ...] = (EVERY,)
    judged: Judged | None = None

    @property
    def credential(self) -> str | None:
        """The name of the limited credential that this is; None for the operator."""
        return self.name.removeprefix(_CREDENTIAL) if self.name.startswith(_CREDENTIAL) else None

    def noting(self, judged: Judged) -> "GatewayCaller":
        """Return the same caller for one call, of which is noted what it sees."""
        return GatewayCaller(name=self.name, act_as=self.act_as, judged=judged)

    @property
    def is_operator(self) -> bool:
        """Whether every session is within reach, and so what belongs to none."""
        return EVERY in self.act_as

    def reaches(self, key: SessionKey) -> bool:
        """Whether a session is within reach."""
        within = self.is_operator or may_act_as(self.act_as, key)
        if not within and self.judged is not None:
            self.judged.denied += 1
        return within

    def saw(self, key: str) -> None:
        """Take down that a session is in the answer."""
        if self.judged is not None:
            self.judged.keys.append(key)

    def was_denied(self, given: str, code: str) -> None:
        """Take down that a single target was refused."""
        if self.judged is not None:
            self.judged.denied_targets.append((given[:MOST_GIVEN], code))

    def check(self, key: SessionKey, given: str) -> None:
        """Refuse a session beyond reach, in the same words as one that is not there.

        Raises:
            ToolRefused: `not_visible`.
        """
        if not self.reaches(key):
            self.was_denied(given, "not_visible")
            raise ToolRefused("not_visible", not_visible(given))


OPERATOR: Final = GatewayCaller()
"""The host's own code, the command line, the shared token."""


class CallingRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run that calls a tool: what the call inherits of its causal chain."""

    run_id: str
    attempt: int
    chain: tuple[str, ...] = ()
    hops: int = 0
    root: str | None = None
    cause: str | None = None


class Caller:
    """Who calls: a session or the operator, perhaps from inside a run.

    `name` is what idempotency keys are kept under: the session's key or the credential's name.
    """

    def __init__(
        self, *, key: str | None, name: str, requester: Requester, run: CallingRun | None, ordinal: int
    ) -> None:
        self.key = key
        self.name = name
        self.requester = requester
        self.run = run
        self.ordinal = ordinal
        self.summary: AccessSummary | None = None
        """What the call decided about access; a tool that decides nothing leaves it None (VIS-4)."""
