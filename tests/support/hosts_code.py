"""Agents and channels of a host, as many tests have them: one that answers, and some that don't."""

from intersession import DeliveryInDoubt, DeliveryRefused, Outbound, Turn


def parrot(turn: Turn) -> str:
    """Answer with what was said."""
    return f"you said {turn.message}"


def broken(_turn: Turn) -> str:
    """Be an agent that fails."""
    raise ValueError("no model")


def refuses(_outbound: Outbound) -> None:
    """Be a channel that takes no text."""
    raise DeliveryRefused("no such chat")


def doubts(_outbound: Outbound) -> None:
    """Be a channel that can't say whether a text has arrived."""
    raise DeliveryInDoubt("the line went dead")


def fails(_outbound: Outbound) -> None:
    """Be a channel that is away."""
    raise ConnectionError("down")
