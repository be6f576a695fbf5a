"""The session system that a host opens: its parts put together, started, recovered and stopped."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.system.follow import followed
    from intersession_actors.system.pykka import As, Inbound
    from intersession_actors.system.settings import prepared
    from intersession_actors.system.state_export import export_state
    from intersession_actors.system.system import SessionSystem

__all__ = ["As", "Inbound", "SessionSystem", "export_state", "followed", "prepared"]
