"""What each causal chain has used so far, over all its exchanges at once (LOOP-5).

A chain can branch: many exchanges of it run side by side, and each alone stays below every limit. The coordinator sees all of
them, so it keeps count, run by run, from the moment a run is asked for. Seeded from the log by what an accepted exchange says;
after a restart the open exchanges are counted again.
"""

from collections import OrderedDict
from typing import Final

from intersession_actors.exchange.rules import chain_of
from intersession_actors.policy import ChainSoFar
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    ExchangeAccepted,
    ExchangeClosed,
    ExchangeEvent,
    LoopEnded,
    PrimaryEnded,
    TurnReplied,
    TurnRequested,
    Usage,
)

MOST_CHAINS: Final = 10_000


class Spent:
    """What one chain has used: what the log said when it was first seen, and what was added since."""

    __slots__ = ("_before", "_cost_micros", "_ended", "_runs", "_tokens")

    def __init__(self, accepted: ExchangeAccepted) -> None:
        self._before = accepted
        self._runs: set[str] = set()
        self._ended: set[str] = set()
        self._tokens = 0
        self._cost_micros = 0

    @property
    def so_far(self) -> ChainSoFar:
        """Runs that were asked for, and what those that have ended used."""
        return chain_of(
            self._before, runs=len(self._runs), tokens=self._tokens, cost_micros=self._cost_micros
        )

    def ask(self, run_id: str) -> None:
        """Count a run; twice is once."""
        self._runs.add(run_id)

    def take_back(self, run_id: str) -> None:
        """Not count a run that was refused."""
        self._runs.discard(run_id)

    def end(self, run_id: str, usage: Usage | None) -> None:
        """Count what a run has used; twice is once."""
        if usage is not None and run_id not in self._ended:
            self._ended.add(run_id)
            self._tokens += usage.total_tokens
            self._cost_micros += usage.cost_micros or 0


class ChainMeter:
    """Keeps the count of the chains that are talking; the least recently heard of are forgotten first."""

    def __init__(self) -> None:
        self._chains: OrderedDict[str, Spent] = OrderedDict()

    def of(self, accepted: ExchangeAccepted) -> Spent:
        """Return what the chain of an exchange has used."""
        root = accepted.root or accepted.run_id
        spent = self._chains.pop(root, None) or Spent(accepted)
        self._chains[root] = spent
        if len(self._chains) > MOST_CHAINS:
            self._chains.popitem(last=False)
        return spent

    def note(self, accepted: ExchangeAccepted, event: ExchangeEvent) -> None:
        """Take a recorded event of an exchange in."""
        match event:
            case ExchangeAccepted() | TurnRequested() | AnnounceRequested():
                self.of(accepted).ask(event.run_id)
            case PrimaryEnded() | TurnReplied():
                self.of(accepted).end(event.run_id, event.usage)
            case AnnounceDecided():
                if event.run_id is not None:
                    self.of(accepted).end(event.run_id, event.usage)
            case LoopEnded() | ExchangeClosed():
                pass  # no run begins or ends by them
