"""The session actor: the one writer of a session's stream, which queues messages and runs the agent on them."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.session.actor import SessionActor
    from intersession_actors.session.answers import decide_returned, ended_again, with_messages
    from intersession_actors.session.commands import (
        Abort,
        AddMessage,
        Archive,
        CheckSend,
        ContextDue,
        DeadlinePassed,
        Decidable,
        Enqueue,
        Patch,
        ReadAgain,
        RecordMessages,
        Reset,
        RunReturned,
        StartNext,
        Unbind,
        Wake,
        message_for,
    )
    from intersession_actors.session.context_cache import ContextCache
    from intersession_actors.session.folding import SHAPE, Awake, begun_in, session_in
    from intersession_actors.session.past_contexts import past_context, session_at
    from intersession_actors.session.records import circumstances_in, command_in
    from intersession_actors.session.rules import Circumstances, decide
    from intersession_actors.session.snapshots import long_sessions, snapshots_compared, take_snapshots
    from intersession_actors.session.state import Running, Session, evolve, without

__all__ = [
    "SHAPE",
    "Abort",
    "AddMessage",
    "Archive",
    "Awake",
    "CheckSend",
    "Circumstances",
    "ContextCache",
    "ContextDue",
    "DeadlinePassed",
    "Decidable",
    "Enqueue",
    "Patch",
    "ReadAgain",
    "RecordMessages",
    "Reset",
    "RunReturned",
    "Running",
    "Session",
    "SessionActor",
    "StartNext",
    "Unbind",
    "Wake",
    "begun_in",
    "circumstances_in",
    "command_in",
    "decide",
    "decide_returned",
    "ended_again",
    "evolve",
    "long_sessions",
    "message_for",
    "past_context",
    "session_at",
    "session_in",
    "snapshots_compared",
    "take_snapshots",
    "with_messages",
    "without",
]
