"""What begins an exchange."""

from intersession_actors.streams import Answer, Command
from intersession_events.facts import ExchangeAccepted, SessionOpened


class OpenExchange(Command, frozen=True, kw_only=True):
    """A send was allowed: accept it (SEND-3)."""

    accepted: ExchangeAccepted
    opening: SessionOpened | None = None
    run_timeout_ms: int = 0
    at_most: int | None = None
    causation: str | None = None
    correlation: str | None = None
    answer: Answer | None = None
