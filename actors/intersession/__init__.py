"""Intersession: session tools for AI agents, on an event-sourced log that can be replayed, stepped and proven.

from intersession import SessionSystem, Turn, Reply
"""

from intersession_actors.agents import Reply, Turn, echo, openai_agent, scripted
from intersession_actors.answers import (
    AcceptedAnswer,
    AgentsAnswer,
    ChatHistoryAnswer,
    HistoryAnswer,
    InboundAnswer,
    ListAnswer,
    RunAnswer,
    SendAnswer,
    SessionAnswer,
    SpawnAnswer,
)
from intersession_actors.channels import (
    Channel,
    DeliveryInDoubt,
    DeliveryRefused,
    MemoryChannel,
    Outbound,
    console_channel,
)
from intersession_actors.config import Config, load_config
from intersession_actors.errors import CalledOnLoop, ConfigError, ToolRefused, UnknownAgent
from intersession_actors.failures import Failure
from intersession_actors.host import MissingExtra
from intersession_actors.runtime import HandlerFailed, InboxFull, RuntimeStopped, WaitedInHandler
from intersession_actors.system import As, Inbound, SessionSystem
from intersession_actors.tools import AgentsList, SessionsHistory, SessionsList, SessionsSend, SessionsSpawn
from intersession_events.errors import (
    AlteredLog,
    AppendConflict,
    CorruptEvent,
    ExportFailed,
    ForgedTopic,
    ForkedStoreError,
    ImportFailed,
    IntersessionError,
    InvalidKey,
    LogError,
    LogTooNew,
    NoSuchStore,
    NotALog,
    NotStorable,
    StoreBusy,
    StoreFull,
    StoreLocked,
    StoreUnavailable,
    UnknownTopic,
    UnknownWord,
    WriterSuperseded,
)
from intersession_events.facts import Message, Usage
from intersession_events.keys import SessionKey
from intersession_projections.seek import UnknownPlace
from intersession_projections.sessions import UnknownMessage

__all__ = [
    "AcceptedAnswer",
    "AgentsAnswer",
    "AgentsList",
    "AlteredLog",
    "AppendConflict",
    "As",
    "CalledOnLoop",
    "Channel",
    "ChatHistoryAnswer",
    "Config",
    "ConfigError",
    "CorruptEvent",
    "DeliveryInDoubt",
    "DeliveryRefused",
    "ExportFailed",
    "Failure",
    "ForgedTopic",
    "ForkedStoreError",
    "HandlerFailed",
    "HistoryAnswer",
    "ImportFailed",
    "Inbound",
    "InboundAnswer",
    "InboxFull",
    "IntersessionError",
    "InvalidKey",
    "ListAnswer",
    "LogError",
    "LogTooNew",
    "MemoryChannel",
    "Message",
    "MissingExtra",
    "NoSuchStore",
    "NotALog",
    "NotStorable",
    "Outbound",
    "Reply",
    "RunAnswer",
    "RuntimeStopped",
    "SendAnswer",
    "SessionAnswer",
    "SessionKey",
    "SessionSystem",
    "SessionsHistory",
    "SessionsList",
    "SessionsSend",
    "SessionsSpawn",
    "SpawnAnswer",
    "StoreBusy",
    "StoreFull",
    "StoreLocked",
    "StoreUnavailable",
    "ToolRefused",
    "Turn",
    "UnknownAgent",
    "UnknownMessage",
    "UnknownPlace",
    "UnknownTopic",
    "UnknownWord",
    "Usage",
    "WaitedInHandler",
    "WriterSuperseded",
    "console_channel",
    "echo",
    "load_config",
    "openai_agent",
    "scripted",
]
