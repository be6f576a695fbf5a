"""What holds texts of exchanges before they go on: sessions that are held, and a rule of the host's (LIVE-1)."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.holding.rule import RuleCaller
    from intersession_actors.holding.ruling import GoingOn, HoldRule, Ruling
    from intersession_actors.holding.standing import HELD, HeldSessions, Holds, order_in

__all__ = ["HELD", "GoingOn", "HeldSessions", "HoldRule", "Holds", "RuleCaller", "Ruling", "order_in"]
