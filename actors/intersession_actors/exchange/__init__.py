"""The coordinator: drives each `sessions_send` through its run, the reply-back loop and the announce."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.exchange.commands import (
        ExchangeCommand,
        HoldExchange,
        OpenExchange,
        ReleaseExchange,
        StopAsking,
    )
    from intersession_actors.exchange.coordinator import Coordinator
    from intersession_actors.exchange.exchange import Exchange
    from intersession_actors.exchange.fixed import fixed_by
    from intersession_actors.exchange.holds import stops
    from intersession_actors.exchange.records import RULES
    from intersession_actors.exchange.rules import Circumstances, decide_open, speaker_of
    from intersession_actors.exchange.steps import (
        announce_run,
        announced_text,
        primary_run,
        primary_step,
        route_of,
        step_asked,
        turn_run,
    )

__all__ = [
    "RULES",
    "Circumstances",
    "Coordinator",
    "Exchange",
    "ExchangeCommand",
    "HoldExchange",
    "OpenExchange",
    "ReleaseExchange",
    "StopAsking",
    "announce_run",
    "announced_text",
    "decide_open",
    "fixed_by",
    "primary_run",
    "primary_step",
    "route_of",
    "speaker_of",
    "step_asked",
    "stops",
    "turn_run",
]
