"""Shared by the rules of exchanges and spawns: opening, state, circumstances, announce and close. Pure."""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from intersession_actors.owners.flows.rules import RecordRead
from intersession_actors.owners.streams.commands import (
    BeginsFlow,
    DeliveryEnded,
    Resume,
    RunEnded,
    StepRefused,
)
from intersession_actors.owners.streams.records import refused_in, refused_of, spent_in, spent_of
from intersession_actors.rules.errors import Judgement
from intersession_actors.rules.policy.chain import Spent, age_s, budget_of, time_at_age
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.basics.plain_json import JsonObject

Accepted = facts.ExchangeAccepted | facts.SpawnAccepted
_UNUSED: Final = Spent()


class Begins(BeginsFlow, frozen=True, kw_only=True):
    """Accept an allowed call, as it was `judged`.

    `budget` is what its causal chain may use (LOOP-5), `causation` the event that led to it.
    """

    budget: facts.Budget
    accepted: Accepted
    causation: str | None = None
    judged: tuple[Judgement, ...] = ()


class Led(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an exchange or a spawn. `pending` is the run or delivery it waits for."""

    accepted: Accepted
    pending: str = ""

    @property
    def budget(self) -> facts.Budget:
        """The causal chain's budget (LOOP-5)."""
        return self.accepted.budget or budget_of(self.accepted, None, 0)

    def awaited_in(self, command: Resume) -> RunEnded | DeliveryEnded | None:
        """Return the awaited outcome, if it has come."""
        return next((ended for ended in command.ended if ended.awaited == self.pending), None)


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about the world that a decision needs, as they are now.

    `spent` is what the whole causal chain has used, its other branches too (LOOP-5). `refused` are steps that a session's actor
    would not take, by run id: they were never recorded.
    """

    log_id: str
    now_ms: int = 0
    has_route: bool = False
    spent: Spent = Spent()
    refused: Mapping[str, StepRefused] = msgspec.field(default_factory=dict[str, StepRefused])


def announce_requested(log_id: str, flow_id: str, speaker: str) -> facts.AnnounceRequested:
    """Return the request for the announced text (ANN-1, SPAWN-9)."""
    run_id = ids.derive(log_id, "run", flow_id, "announce")
    return facts.AnnounceRequested(
        speaker=speaker, run_id=run_id, message_id=ids.derive(log_id, "message", run_id)
    )


ENDS: Final[
    Mapping[str, Literal["announced", "announce_failed", "announce_denied", "delivery_unknown", "withheld"]]
] = {
    "done": "announced",
    "failed": "announce_failed",
    "denied": "announce_denied",
    "unknown": "delivery_unknown",
    "withheld": "withheld",
}
"""Why a flow is closed, by how the delivery of its announce has ended."""


def knew_of(budget: facts.Budget, now: Circumstances) -> JsonObject:
    """Return the circumstances in a record; the chain's age in `budget` stands for the time."""
    knew: JsonObject = {}
    if now.now_ms and (age := age_s(budget, now.now_ms)):
        knew["age"] = age
    if now.has_route:
        knew["hasRoute"] = True
    if now.refused:
        knew["refused"] = refused_of(now.refused)
    if now.spent != _UNUSED:
        knew["spent"] = spent_of(now.spent)
    return knew


def circumstances_in(read: RecordRead, budget: facts.Budget) -> Circumstances:
    """Return the circumstances from a record."""
    knew = read.record.knew
    return Circumstances(
        log_id=read.log_id,
        now_ms=time_at_age(budget, knew.get("age", 0)),
        has_route=knew.get("hasRoute", False),
        refused=refused_in(knew, read.stream, read.words),
        spent=spent_in(knew),
    )
