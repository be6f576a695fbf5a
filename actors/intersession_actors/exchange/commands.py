"""What the coordinator can be told."""

from intersession_actors.streams import BeginsFlow, DeliveryEnded, Resume, RunEnded
from intersession_events import ids
from intersession_events.facts import Budget, ExchangeAccepted, SessionOpened


class OpenExchange(BeginsFlow, frozen=True, kw_only=True):
    """A send was allowed: accept it (SEND-3). `budget` is what its causal chain may use (LOOP-5)."""

    budget: Budget
    accepted: ExchangeAccepted
    opening: SessionOpened | None = None
    run_timeout_ms: int = 0
    at_most: int | None = None
    causation: str | None = None

    @property
    def stream(self) -> str:
        """The name of the exchange's stream."""
        return ids.exchange_stream(self.accepted.exchange_id)


ExchangeCommand = OpenExchange | RunEnded | DeliveryEnded | Resume
