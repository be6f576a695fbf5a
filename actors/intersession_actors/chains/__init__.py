"""Causal chains: what each has used, counted in one place, and what code of the host's is called for (LOOP-5)."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.chains.cause import Cause, CausedBy, Times, UnderWay, current_cause
    from intersession_actors.chains.ledger import ChainLedger, ChainUnread, RunsOf, RunUse

__all__ = [
    "Cause",
    "CausedBy",
    "ChainLedger",
    "ChainUnread",
    "RunUse",
    "RunsOf",
    "Times",
    "UnderWay",
    "current_cause",
]
