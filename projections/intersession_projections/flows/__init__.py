"""Exchanges, spawns and deliveries as rows, for recovery, the tools and the command line."""

from intersession_projections.flows.flows import Flows, OpenFlowsView
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

__all__ = [
    "DeliveriesWanted",
    "DeliveryNote",
    "DeliverySummary",
    "ExchangeSummary",
    "Flows",
    "OpenFlowsView",
    "Position",
    "SpawnSummary",
    "Summary",
    "accept_flow",
    "evolve_flow",
]
