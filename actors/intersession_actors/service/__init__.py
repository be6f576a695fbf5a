"""The one place that every door asks: views and configuration to read, actors to tell, answers to wait for."""

from intersession_actors.service.arguments import invalid, read_arguments
from intersession_actors.service.callers import (
    MOST_GIVEN,
    OPERATOR,
    Caller,
    CallingRun,
    GatewayCaller,
    Judged,
)
from intersession_actors.service.claims import claimed_session
from intersession_actors.service.imports import Imports
from intersession_actors.service.inbound import ChatDoor, InboundAccepted, InboundMessage, receive
from intersession_actors.service.reader import Place, Reader
from intersession_actors.service.receipts import AccessSummary, Receipts
from intersession_actors.service.resolve import (
    Resolved,
    TargetRefused,
    resolve_label,
    resolve_main,
    resolve_target,
)
from intersession_actors.service.run_waits import DoorThreads, RunDoor
from intersession_actors.service.service import Service
from intersession_actors.service.supervisor import Recipe, Supervisor
from intersession_actors.service.waits import Wait

__all__ = [
    "MOST_GIVEN",
    "OPERATOR",
    "AccessSummary",
    "Caller",
    "CallingRun",
    "ChatDoor",
    "DoorThreads",
    "GatewayCaller",
    "Imports",
    "InboundAccepted",
    "InboundMessage",
    "Judged",
    "Place",
    "Reader",
    "Receipts",
    "Recipe",
    "Resolved",
    "RunDoor",
    "Service",
    "Supervisor",
    "TargetRefused",
    "Wait",
    "claimed_session",
    "invalid",
    "read_arguments",
    "receive",
    "resolve_label",
    "resolve_main",
    "resolve_target",
]
