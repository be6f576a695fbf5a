"""The coordinator: drives each `sessions_send` through its run, the reply-back loop and the announce."""

from intersession_actors.exchange.commands import OpenExchange
from intersession_actors.exchange.coordinator import Coordinator
from intersession_actors.exchange.rules import Circumstances, Exchange, decide, speaker_of
from intersession_actors.exchange.rules import evolve as evolve_exchange

__all__ = [
    "Circumstances",
    "Coordinator",
    "Exchange",
    "OpenExchange",
    "decide",
    "evolve_exchange",
    "speaker_of",
]
