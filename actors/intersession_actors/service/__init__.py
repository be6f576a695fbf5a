"""What every door asks: who calls and what it may have, views to read, actors to tell, answers to wait for."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.service.arguments import bounded, read_arguments, whole
    from intersession_actors.service.asking import (
        AskedRun,
        FirstAnswer,
        Origin,
        ask_flow,
        ask_session,
        asked_within,
        digest_of,
        flow_begun_by,
        gone_on,
        keeping_refusals,
        key_conflict,
        origin_of,
        reserving,
        run_id_of,
        was_asked_for,
    )
    from intersession_actors.service.callers import EVERY, OPERATOR, AccessSummary, Call, Caller, CallingRun
    from intersession_actors.service.claims import claimed_session
    from intersession_actors.service.deliveries import deliver, delivery_of, route_of
    from intersession_actors.service.imports import Imports
    from intersession_actors.service.inbound import ChatDoor, InboundFields, InboundMessage
    from intersession_actors.service.openings import calling_row, opening
    from intersession_actors.service.pending import Pending, Result, afinished, finished
    from intersession_actors.service.reader import Reader
    from intersession_actors.service.receipts import Receipts
    from intersession_actors.service.resolve import (
        Resolved,
        TargetRefused,
        resolve_label,
        resolve_main,
        resolve_target,
    )
    from intersession_actors.service.run_waits import RunDoor, goes_on, run_ended, unknown_run
    from intersession_actors.service.service import Service
    from intersession_actors.service.supervisor import Recipe, Supervisor
    from intersession_actors.service.waits import Wait

__all__ = [
    "EVERY",
    "OPERATOR",
    "AccessSummary",
    "AskedRun",
    "Call",
    "Caller",
    "CallingRun",
    "ChatDoor",
    "FirstAnswer",
    "Imports",
    "InboundFields",
    "InboundMessage",
    "Origin",
    "Pending",
    "Reader",
    "Receipts",
    "Recipe",
    "Resolved",
    "Result",
    "RunDoor",
    "Service",
    "Supervisor",
    "TargetRefused",
    "Wait",
    "afinished",
    "ask_flow",
    "ask_session",
    "asked_within",
    "bounded",
    "calling_row",
    "claimed_session",
    "deliver",
    "delivery_of",
    "digest_of",
    "finished",
    "flow_begun_by",
    "goes_on",
    "gone_on",
    "keeping_refusals",
    "key_conflict",
    "opening",
    "origin_of",
    "read_arguments",
    "reserving",
    "resolve_label",
    "resolve_main",
    "resolve_target",
    "route_of",
    "run_ended",
    "run_id_of",
    "unknown_run",
    "was_asked_for",
    "whole",
]
