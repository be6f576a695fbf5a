"""The stored names and versions of all facts, and their classes. A topic that is not here is a typed error.

A topic is `<name>.<version>`, frozen for ever and independent of where the class lives.
"""

from collections.abc import Mapping
from typing import Final, get_args

import msgspec

from intersession_events.basics.errors import CorruptEvent, UnknownTopic, UnknownWord
from intersession_events.facts import access, delivery, exchange, log, parts, run, session, spawn

Event = (
    session.SessionEvent
    | run.RunEvent
    | exchange.ExchangeEvent
    | spawn.SpawnEvent
    | delivery.DeliveryEvent
    | access.AccessEvent
    | log.SystemEvent
)

TOPICS: Final[Mapping[str, type[Event]]] = {
    "session_opened.1": session.SessionOpened,
    "session_patched.1": session.SessionPatched,
    "route_changed.1": session.RouteChanged,
    "session_reset.1": session.SessionReset,
    "session_archived.1": session.SessionArchived,
    "thread_bound.1": session.ThreadBound,
    "thread_unbound.1": session.ThreadUnbound,
    "session_imported.1": session.SessionImported,
    "message_recorded.1": session.MessageRecorded,
    "line_imported.1": session.LineImported,
    "run_queued.1": run.RunQueued,
    "run_started.1": run.RunStarted,
    "run_interrupted.1": run.RunInterrupted,
    "run_completed.1": run.RunCompleted,
    "run_failed.1": run.RunFailed,
    "run_aborted.1": run.RunAborted,
    "late_reply_dropped.1": run.LateReplyDropped,
    "exchange_accepted.1": exchange.ExchangeAccepted,
    "turn_ended.1": exchange.TurnEnded,
    "turn_requested.1": parts.TurnRequested,
    "loop_ended.1": parts.LoopEnded,
    "announce_requested.1": parts.AnnounceRequested,
    "announce_decided.1": parts.AnnounceDecided,
    "exchange_closed.1": parts.ExchangeClosed,
    "hold_requested.1": exchange.HoldRequested,
    "hold_withdrawn.1": exchange.HoldWithdrawn,
    "exchange_held.1": parts.ExchangeHeld,
    "exchange_released.1": exchange.ExchangeReleased,
    "spawn_accepted.1": spawn.SpawnAccepted,
    "thread_opened.1": spawn.ThreadOpened,
    "attachments_ready.1": parts.AttachmentsReady,
    "child_ended.1": spawn.ChildEnded,
    "result_handed.1": parts.ResultHanded,
    "spawn_closed.1": parts.SpawnClosed,
    "child_archived.1": spawn.ChildArchived,
    "attachments_removed.1": spawn.AttachmentsRemoved,
    "attachment_removal_failed.1": spawn.AttachmentRemovalFailed,
    "delivery_decided.1": delivery.DeliveryDecided,
    "delivery_started.1": delivery.DeliveryStarted,
    "delivery_part_done.1": delivery.DeliveryPartDone,
    "delivery_done.1": delivery.DeliveryDone,
    "delivery_failed.1": delivery.DeliveryFailed,
    "delivery_unknown.1": delivery.DeliveryUnknown,
    "delivery_denied.1": delivery.DeliveryDenied,
    "delivery_withheld.1": delivery.DeliveryWithheld,
    "delivery_retried.1": delivery.DeliveryRetried,
    "access_recorded.1": access.AccessRecorded,
    "send_refused.1": access.SendRefused,
    "log_opened.1": log.LogOpened,
    "clock_stepped.1": log.ClockStepped,
    "config_loaded.1": log.ConfigLoaded,
    "checkpoint_taken.1": log.CheckpointTaken,
    "checkpoint_published.1": log.CheckpointPublished,
    "import_reported.1": log.ImportReported,
    "inbound_taken.1": log.InboundTaken,
    "note_pinned.1": log.NotePinned,
    "erased.1": log.Erased,
    "forked_from.1": log.ForkedFrom,
    "fork_edited.1": log.ForkEdited,
    "recording_left.1": log.RecordingLeft,
}

EVENT_KINDS: Final = frozenset(topic.rpartition(".")[0] for topic in TOPICS)
"""The names of all events, without the versions of their shapes."""
_TOPIC_OF: Final[Mapping[type[Event], str]] = {cls: topic for topic, cls in TOPICS.items()}
_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_DECODERS: Final[Mapping[str, "msgspec.json.Decoder[Event]"]] = {
    topic: msgspec.json.Decoder(cls) for topic, cls in TOPICS.items()
}


SAYING: Final = frozenset(_TOPIC_OF[kind] for kind in get_args(run.Saying))
"""The stored names of the events that can bring a message into a transcript."""


def topic_of(event: Event) -> str:
    """Return the stored name of an event."""
    return _TOPIC_OF[type(event)]


def topics_of(*kinds: type[Event]) -> frozenset[str]:
    """Return the stored names that kinds of events have."""
    return frozenset(_TOPIC_OF[kind] for kind in kinds)


def encode(event: Event) -> bytes:
    """Return the canonical JSON (RFC 8785) of an event."""
    return _ENCODER.encode(event)


def decode(topic: str, payload: bytes) -> Event:
    """Return the event stored under a topic.

    Raises:
        UnknownTopic: the topic is not in the registry. Nothing is imported.
        UnknownWord: the payload holds a word that this version does not know where only some can stand.
        CorruptEvent: the payload is not of the topic's shape.
    """
    decoder = _DECODERS.get(topic)
    if decoder is None:
        raise UnknownTopic(topic)
    try:
        return decoder.decode(payload)
    except msgspec.ValidationError as error:
        if str(error).startswith(_NEW_WORDS):
            raise UnknownWord(topic, str(error)) from error
        raise CorruptEvent(f"topic {topic}: the payload is not of its shape: {error}") from error
    except (ValueError, RecursionError) as error:
        raise CorruptEvent(f"topic {topic}: the payload is not of its shape: {error}") from error


_NEW_WORDS: Final = ("Invalid enum value", "Invalid value")
"""How msgspec begins to say that a word is none of a `Literal`, or a tag none of a union."""
