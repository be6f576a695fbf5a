"""The WebSocket protocol: frames, a connection, the events of runs, and a client."""

from intersession.gateway.protocol.connection import RESTARTING, TRY_AGAIN, Connection
from intersession.gateway.protocol.effects import Close, Effect, Perform, Send, Welcome
from intersession.gateway.protocol.frames import PROTOCOL, Frame, error_shape
from intersession.gateway.protocol.run_end import second_answer
from intersession.gateway.protocol.run_events import RunEvent, RunEvents
from intersession.gateway.protocol.run_names import name_for, named

__all__ = [
    "PROTOCOL",
    "RESTARTING",
    "TRY_AGAIN",
    "Close",
    "Connection",
    "Effect",
    "Frame",
    "Perform",
    "RunEvent",
    "RunEvents",
    "Send",
    "Welcome",
    "error_shape",
    "name_for",
    "named",
    "second_answer",
]
