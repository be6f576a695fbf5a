"""Tells of a handler that took long: all that share its thread had to wait. Used by every actor of ours."""

from collections.abc import Callable
from typing import Final

from intersession_actors.streams.world import World

SLOW_S: Final = 1.0
"""A handler only decides and hands on; one that takes so long has met a fault, or a machine that has too much to do."""


def handle_timed(world: World, name: str, handle: Callable[[object], None], message: object) -> None:
    """Have a message handled, and tell the operator if that was slow."""
    began = world.time.clock.monotonic()
    try:
        handle(message)
    finally:
        took = world.time.clock.monotonic() - began
        if took >= SLOW_S:
            world.reports.tell(
                "slow_handler", actor=name, error=f"{type(message).__name__} took {took:.1f} s"
            )
