"""The control socket beside a log: how commands of the same user ask the process that writes it."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.control.beside_log import ControlClient, ControlSocket, listening

__all__ = ["ControlClient", "ControlSocket", "listening"]
