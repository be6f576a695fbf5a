"""Intersession: session tools for AI agents, on an event-sourced log that can be replayed, stepped and proven.

from intersession import SessionSystem, Turn, Reply
"""

from intersession_actors.agents import echo, openai_agent, scripted
from intersession_actors.channels import Channel, DeliveryRefused, MemoryChannel, Outbound, console_channel
from intersession_actors.config import Config, load_config
from intersession_actors.errors import ConfigError, ToolRefused, UnknownAgent
from intersession_actors.system import SessionSystem
from intersession_actors.turn import Reply, Turn
from intersession_events.errors import (
    AppendConflict,
    CorruptEvent,
    ForkedStoreError,
    ImportFailed,
    IntersessionError,
    InvalidKey,
    LogError,
    LogTooNew,
    NotALog,
    StoreFull,
    StoreLocked,
    StoreUnavailable,
    UnknownTopic,
)
from intersession_events.keys import SessionKey
from intersession_events.message import Message, Usage

__all__ = [
    "AppendConflict",
    "Channel",
    "Config",
    "ConfigError",
    "CorruptEvent",
    "DeliveryRefused",
    "ForkedStoreError",
    "ImportFailed",
    "IntersessionError",
    "InvalidKey",
    "LogError",
    "LogTooNew",
    "MemoryChannel",
    "Message",
    "NotALog",
    "Outbound",
    "Reply",
    "SessionKey",
    "SessionSystem",
    "StoreFull",
    "StoreLocked",
    "StoreUnavailable",
    "ToolRefused",
    "Turn",
    "UnknownAgent",
    "UnknownTopic",
    "Usage",
    "console_channel",
    "echo",
    "load_config",
    "openai_agent",
    "scripted",
]
