"""The methods, such as `chat.send`: what clients of the gateway, the command line and a host's own code can ask for."""

from intersession_actors.methods.methods import METHODS, GatewayMethods, unknown_method
from intersession_actors.methods.params import NoParams

__all__ = ["METHODS", "GatewayMethods", "NoParams", "unknown_method"]
