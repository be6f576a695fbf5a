"""The methods, such as `chat.send`: what clients of the gateway, the command line and a host's own code can ask for."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.methods.clock import clock_findings
    from intersession_actors.methods.forking import fork_methods
    from intersession_actors.methods.holding import ReleaseFields, hold_params, release_params
    from intersession_actors.methods.methods import METHODS, GatewayMethods, unknown_method
    from intersession_actors.methods.params import (
        ForkParams,
        ForksParams,
        HoldParams,
        NoParams,
        ReleaseParams,
    )
    from intersession_actors.methods.terms import FIRST, in_terms_of_methods, with_advice

__all__ = [
    "FIRST",
    "METHODS",
    "ForkParams",
    "ForksParams",
    "GatewayMethods",
    "HoldParams",
    "NoParams",
    "ReleaseFields",
    "ReleaseParams",
    "clock_findings",
    "fork_methods",
    "hold_params",
    "in_terms_of_methods",
    "release_params",
    "unknown_method",
    "with_advice",
]
