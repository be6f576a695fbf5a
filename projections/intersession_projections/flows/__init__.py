"""Exchanges, spawns and deliveries as rows, for recovery, the tools and the command line."""

from intersession_projections.flows.flows import Flows
from intersession_projections.flows.held import Hold, held_ms, held_value, holds_in
from intersession_projections.flows.rows import (
    DeliveriesWanted,
    DeliveryNote,
    DeliverySummary,
    ExchangeSummary,
    Position,
    SpawnSummary,
    Summary,
    accept_flow,
    evolve_flow,
)
from intersession_projections.flows.view import OpenFlowsView

__all__ = [
    "DeliveriesWanted",
    "DeliveryNote",
    "DeliverySummary",
    "ExchangeSummary",
    "Flows",
    "Hold",
    "OpenFlowsView",
    "Position",
    "SpawnSummary",
    "Summary",
    "accept_flow",
    "evolve_flow",
    "held_ms",
    "held_value",
    "holds_in",
]
