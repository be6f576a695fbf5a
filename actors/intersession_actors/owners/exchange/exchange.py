"""Where an exchange stands: the state that its events lead to, and what it keeps from when it was accepted (CFG-3). Pure."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from intersession_actors.owners.flows.led import Led
from intersession_actors.owners.streams.texts import Replies
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.policy.chain import budget_of
from intersession_events import facts
from intersession_events.facts import ExchangeAccepted, ForkEdit

Phase = Literal["primary", "turn", "announce", "held", "released", "delivery", "closed"]


class Quoted(msgspec.Struct, frozen=True):
    """A text that goes on: a run's reply, or else `text` from an edit or an import.

    `heard` is where the target's transcript has it, which has said or heard it; None where it has not.
    """

    run_id: str
    text: str | None = None
    heard: facts.Quote | None = None

    def for_target(self, texts: Replies) -> str | facts.Quote:
        """Return the text for the target, beside a message: its place in the target's transcript, else the whole text."""
        return self.read(texts) if self.heard is None else self.heard

    def read(self, texts: Replies) -> str:
        """Return the text."""
        return texts.reply(self.run_id) if self.text is None else self.text


class Exchange(Led, frozen=True, kw_only=True):
    """The state of an exchange.

    `round_one` is the first reply, `latest` the last one that said something, `previous` what stood for it before the last reply. `held` is where it has stopped, or did last,
    `released` the last release; in phase `released` it has still to go on from there. `asked` wants it to
    stop, `withdrawn`: the last word on that was that it need not. `served` are the orders that have stopped
    it, `unheld`: nothing stops it any more. `held_ms` is how long it was held in all.
    """

    accepted: facts.ExchangeAccepted
    phase: Phase = "primary"
    turn: int = 0
    round_one: Quoted | None = None
    latest: Quoted | None = None
    previous: Quoted | None = None
    asked: facts.HoldRequested | None = None
    withdrawn: bool = False
    held: facts.ExchangeHeld | None = None
    released: facts.ExchangeReleased | None = None
    served: frozenset[str] = frozenset()
    unheld: bool = False
    held_ms: int = 0

    @property
    def budget(self) -> facts.Budget:
        """The budget of the exchange's causal chain (LOOP-5); held time is not counted."""
        budget = self.accepted.budget or budget_of(self.accepted, None, 0)
        if not self.held_ms:
            return budget
        return msgspec.structs.replace(budget, held_ms=budget.held_ms + self.held_ms)

    @property
    def quoted(self) -> set[str]:
        """The runs whose texts may still go on."""
        quoted = {self.accepted.run_id, self.pending}
        for one in (self.round_one, self.latest, self.previous):
            if one is not None:
                quoted.add(one.run_id)
        return quoted

    @property
    def is_announcing(self) -> bool:
        """Whether its loop is over."""
        if self.phase in {"held", "released"}:
            return self.held is not None and self.held.step == "announce"
        return self.phase in {"announce", "delivery", "closed"}

    @property
    def edited_by(self) -> str | None:
        """Who wrote the text that goes on, if not its speaker."""
        held, released = self.held, self.released
        if held is None or released is None or held.hold_id != released.hold_id or released.action != "edit":
            return None
        return released.by if held.turn == self.turn - 1 else None


_FIXED: Final[Mapping[str, str]] = {
    "session.agentToAgent.maxPingPongTurns": "max_turns",
    "session.agentToAgent.turnTimeoutSeconds": "turn_timeout_ms",
    "session.agentToAgent.announce": "announce",
    "session.agentToAgent.hold": "hold",
}
"""Settings that an exchange keeps from when it was accepted (CFG-3), and what it calls them."""
_LIMITS: Final = "session.agentToAgent.limits"


def fixed_by(config: Config, edits: Iterable[ForkEdit], accepted: ExchangeAccepted) -> ExchangeAccepted:
    """Return an exchange's settings as they apply here: a fork's own settings apply to accepted ones too."""
    paths = {edit.key for edit in edits}
    settings, now = accepted.settings, config.session.exchange
    changed = {name: getattr(now, name) for path, name in _FIXED.items() if path in paths}
    if any(path.startswith(_LIMITS) for path in paths):
        changed["limits"] = now.limits
        if accepted.budget is not None:
            budget = msgspec.structs.replace(accepted.budget, limits=now.limits)
            accepted = msgspec.structs.replace(accepted, budget=budget)
    return msgspec.structs.replace(accepted, settings=msgspec.structs.replace(settings, **changed))
