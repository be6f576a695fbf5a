"""Exchanges, spawns and deliveries that are open or ended, as rows."""

from intersession_projections.flows.flows import Flows, OpenFlowsView
from intersession_projections.flows.rows import DeliverySummary, ExchangeSummary, SpawnSummary

__all__ = ["DeliverySummary", "ExchangeSummary", "Flows", "OpenFlowsView", "SpawnSummary"]
