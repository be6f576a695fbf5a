"""The coordinator: drives each `sessions_send` through its run, the reply-back loop and the announce."""

from intersession_actors.exchange.commands import OpenExchange
from intersession_actors.exchange.coordinator import Coordinator

__all__ = ["Coordinator", "OpenExchange"]
