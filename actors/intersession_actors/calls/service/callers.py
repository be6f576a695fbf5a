"""The caller of a tool or a method, and one call with its access decisions; used by every door."""

from typing import Final

import msgspec

from intersession_actors.rules.errors import Judgement, ToolRefused
from intersession_actors.rules.gate.limits import DENIED
from intersession_actors.rules.gate.values import storable
from intersession_actors.rules.policy.access import (
    Requester,
    SeeSession,
    Sight,
    may_act_as,
    may_act_for,
    not_visible,
)
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import Budget

EVERY: Final = "*"


class CallingRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that calls a tool: `budget` is the call's share of its causal chain, `cause` the event that began it."""

    run_id: str
    attempt: int
    budget: Budget
    cause: str | None = None
    model: str | None = None


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The caller: a session (`key`), with or without a run, or the operator, or a credential for some sessions (VIS-6).

    `name` is what idempotency keys are kept under. `act_as` are globs over the canonical keys within reach of the
    operator or a credential; what a session reaches is policy's to say. `credential` names the limited credential that
    stands behind the calls, for their receipts. `of_agent`: it is an agent's own, whose runs its calls go on with (LOOP-5).
    `sees` are globs over further keys, which the tools of those sessions see and reach; it may not act as these. `agents` and
    `channels` are globs over what a worker of it may have (WORK-7). `copies`: it may take copies of the whole log (COPY-3). `door` is the credential of the host that has admitted the
    caller and handed its call on (DOOR-2).
    """

    name: str = "operator"
    key: str | None = None
    act_as: tuple[str, ...] = (EVERY,)
    credential: str | None = None
    of_agent: bool = False
    sees: tuple[str, ...] = ()
    agents: tuple[str, ...] = (EVERY,)
    channels: tuple[str, ...] = (EVERY,)
    copies: bool = True
    run: CallingRun | None = None
    door: str | None = None

    @classmethod
    def by_credential(
        cls,
        name: str,
        act_as: tuple[str, ...],
        *,
        of_agent: bool = False,
        sees: tuple[str, ...] = (),
        agents: tuple[str, ...] = (),
        channels: tuple[str, ...] = (),
        copies: bool = False,
    ) -> "Caller":
        """Return the caller for a limited credential."""
        return cls(
            name=f"credential:{name}",
            act_as=act_as,
            credential=name,
            of_agent=of_agent,
            sees=sees,
            agents=agents,
            channels=channels,
            copies=copies,
        )

    @property
    def within(self) -> tuple[str, ...] | None:
        """The greatest reach of a session's tools when this caller acts as it: globs over canonical keys; None is no limit."""
        named = (*self.act_as, *self.sees)
        return None if EVERY in named else named

    @property
    def is_operator(self) -> bool:
        """Whether every session is within reach, and with it everything that belongs to no session."""
        return self.key is None and EVERY in self.act_as

    def reaches(self, key: SessionKey) -> bool:
        """Whether a session is within reach of the operator or a credential."""
        return self.is_operator or may_act_as(self.act_as, key)

    def judged(self, key: SessionKey) -> Judgement:
        """Return the judgement's inputs for a session that is not within reach."""
        return Judgement(SeeSession(operation="history", key=str(key)), Sight(within=self.act_as))

    def has_agent(self, agent_id: str) -> bool:
        """Whether any session of an agent can be within reach; other agents are not mentioned to the caller."""
        return self.is_operator or may_act_for(self.act_as, agent_id)


OPERATOR: Final = Caller()
"""The host's own code, the command line, the shared token."""


class AccessSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The access decisions of a call: the canonical keys that it returned, and how many existing sessions were hidden.

    `denied_targets` are single targets that were refused, as given, and why. `judged` is what was asked and known: of the last
    target that was refused, else of what was let.
    """

    keys: tuple[str, ...] = ()
    denied: int = 0
    denied_targets: tuple[tuple[str, str], ...] = ()
    judged: Judgement | None = None

    @classmethod
    def of_refused(cls, given: str, code: str, judged: Judgement | None = None) -> "AccessSummary":
        """Return the summary of a call whose only target was refused."""
        return cls(denied_targets=((storable(given[: DENIED.most]), code),), judged=judged)


class Call:
    """One call of a tool or a method.

    `requester` is the caller as policy judges it at this moment. `asks_for` is the id of the run that the call asks for, where
    that derives of what the call says and of what it is made in. `again`: what is there under that id was asked for by the same
    call, made before by an attempt that was cut off, or where a fork was cut. `digests` are recorded with what it begins.
    """

    def __init__(
        self,
        caller: Caller,
        requester: Requester,
        *,
        asks_for: str | None = None,
        again: bool = False,
        digests: tuple[str, ...] = (),
    ) -> None:
        self.caller = caller
        self.requester = requester
        self.asks_for = asks_for
        self.again = again
        self.digests = digests
        self.summary: AccessSummary | None = None
        """What the call decided about access, for its receipt (VIS-4); None while it has decided nothing."""

    def saw(self, key: str) -> None:
        """Note that a session is in the answer."""
        self._add(AccessSummary(keys=(key,)))

    def left_out(self) -> None:
        """Note that an existing session was left out of the answer, because it is beyond reach."""
        self._add(AccessSummary(denied=1))

    def was_denied(self, given: str, code: str, judged: Judgement | None = None) -> None:
        """Note that a single target was refused."""
        self._add(AccessSummary.of_refused(given, code, judged))

    def check(self, key: SessionKey, given: str) -> None:
        """Refuse a session beyond reach, in the same words as a missing one, and note that.

        Raises:
            ToolRefused: `not_visible`.
        """
        if not self.caller.reaches(key):
            judged = self.caller.judged(key)
            self.left_out()
            self.was_denied(given, "not_visible", judged)
            raise ToolRefused("not_visible", not_visible(given), judged=judged)

    def _add(self, more: AccessSummary) -> None:
        so_far = self.summary or AccessSummary()
        self.summary = AccessSummary(
            keys=so_far.keys + more.keys,
            denied=so_far.denied + more.denied,
            denied_targets=so_far.denied_targets + more.denied_targets,
            judged=more.judged or so_far.judged,
        )
