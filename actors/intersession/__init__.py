"""Intersession: session tools for AI agents, on an event-sourced log that can be replayed, stepped and proven.

from intersession import SessionSystem, Turn, Reply
"""

from typing import TYPE_CHECKING

from intersession_events.faces import on_demand

if TYPE_CHECKING:
    from intersession_actors.agents.agents import echo, openai_agent, pydantic_ai_agent, scripted
    from intersession_actors.agents.turn import Reply, Turn
    from intersession_actors.answers import (
        AcceptedAnswer,
        AgentsAnswer,
        ChatHistoryAnswer,
        HistoryAnswer,
        HoldAnswer,
        InboundAnswer,
        ListAnswer,
        ReleaseAnswer,
        RunAnswer,
        SearchedAnswer,
        SendAnswer,
        SessionAnswer,
        SpawnAnswer,
    )
    from intersession_actors.channels.channels import (
        Channel,
        DeliveryInDoubt,
        DeliveryLater,
        DeliveryRefused,
        MemoryChannel,
        Outbound,
        console_channel,
    )
    from intersession_actors.config.config import Config, load_config
    from intersession_actors.debugger.answers import PlaceAnswer
    from intersession_actors.debugger.debugger import Debugger
    from intersession_actors.debugger.diff import DiffAnswer
    from intersession_actors.debugger.lens import LensAnswer
    from intersession_actors.debugger.lists.deliveries import DeliveriesAnswer
    from intersession_actors.debugger.lists.events import EventsAnswer
    from intersession_actors.debugger.lists.messages import MessagesAnswer
    from intersession_actors.debugger.lists.runs import RunsAnswer
    from intersession_actors.debugger.opened import OpenLog, open_log
    from intersession_actors.debugger.origin import OriginAnswer
    from intersession_actors.debugger.search import SearchAnswer
    from intersession_actors.debugger.show import ShowAnswer
    from intersession_actors.debugger.smells import SmellingAnswer, SmellsAnswer
    from intersession_actors.debugger.standing.answers import StateAnswer
    from intersession_actors.debugger.state import Change, ChangesAnswer
    from intersession_actors.debugger.why import EffectsAnswer, WhyAnswer
    from intersession_actors.errors import CalledOnLoop, ConfigError, ToolRefused, UnknownAgent
    from intersession_actors.failures.failure import Failure
    from intersession_actors.forking.carrying import Carried
    from intersession_actors.holding.ruling import GoingOn, HoldRule
    from intersession_actors.methods.holding import ReleaseFields
    from intersession_actors.replaying.difference import Difference
    from intersession_actors.replaying.replayed import Replayed, replay_file
    from intersession_actors.runtime.actor import HandlerFailed
    from intersession_actors.runtime.inbox import InboxFull
    from intersession_actors.runtime.reply import WaitedInHandler
    from intersession_actors.runtime.runtime import RuntimeStopped
    from intersession_actors.service.inbound import InboundFields
    from intersession_actors.simulation.greenlets import Stuck
    from intersession_actors.simulation.simulated import SimulatedRuntime
    from intersession_actors.system.pykka import As, Inbound
    from intersession_actors.system.system import SessionSystem
    from intersession_actors.tools.agents_list import AgentsList
    from intersession_actors.tools.sessions_history import SessionsHistory
    from intersession_actors.tools.sessions_list import SessionsList
    from intersession_actors.tools.sessions_search import SessionsSearch
    from intersession_actors.tools.sessions_send import SessionsSend
    from intersession_actors.tools.sessions_spawn import SessionsSpawn
    from intersession_events.errors import (
        AlteredLog,
        AppendConflict,
        BackupFailed,
        BadCheckpoint,
        BadKey,
        CorruptEvent,
        ExportFailed,
        ForgedTopic,
        ForkedStoreError,
        ForkFailed,
        ImportFailed,
        IntersessionError,
        InvalidKey,
        LogError,
        LogRewound,
        LogTooNew,
        MigrationFailed,
        MissingExtra,
        NoSuchStore,
        NotALog,
        NotStorable,
        Sealed,
        StoreBusy,
        StoreFull,
        StoreLocked,
        StoreUnavailable,
        UnknownTopic,
        UnknownWord,
        WriterSuperseded,
    )
    from intersession_events.facts import ForkEdit, Message, Usage
    from intersession_events.keys.key import SessionKey
    from intersession_projections.places.grammar import UnknownPlace
    from intersession_projections.sessions.history import UnknownMessage
    from intersession_projections.smells.smell import Seen, Smell, SmellRule

on_demand(globals())

__all__ = [
    "AcceptedAnswer",
    "AgentsAnswer",
    "AgentsList",
    "AlteredLog",
    "AppendConflict",
    "As",
    "BackupFailed",
    "BadCheckpoint",
    "BadKey",
    "CalledOnLoop",
    "Carried",
    "Change",
    "ChangesAnswer",
    "Channel",
    "ChatHistoryAnswer",
    "Config",
    "ConfigError",
    "CorruptEvent",
    "Debugger",
    "DeliveriesAnswer",
    "DeliveryInDoubt",
    "DeliveryLater",
    "DeliveryRefused",
    "DiffAnswer",
    "Difference",
    "EffectsAnswer",
    "EventsAnswer",
    "ExportFailed",
    "Failure",
    "ForgedTopic",
    "ForkEdit",
    "ForkFailed",
    "ForkedStoreError",
    "GoingOn",
    "HandlerFailed",
    "HistoryAnswer",
    "HoldAnswer",
    "HoldRule",
    "ImportFailed",
    "Inbound",
    "InboundAnswer",
    "InboundFields",
    "InboxFull",
    "IntersessionError",
    "InvalidKey",
    "LensAnswer",
    "ListAnswer",
    "LogError",
    "LogRewound",
    "LogTooNew",
    "MemoryChannel",
    "Message",
    "MessagesAnswer",
    "MigrationFailed",
    "MissingExtra",
    "NoSuchStore",
    "NotALog",
    "NotStorable",
    "OpenLog",
    "OriginAnswer",
    "Outbound",
    "PlaceAnswer",
    "ReleaseAnswer",
    "ReleaseFields",
    "Replayed",
    "Reply",
    "RunAnswer",
    "RunsAnswer",
    "RuntimeStopped",
    "Sealed",
    "SearchAnswer",
    "SearchedAnswer",
    "Seen",
    "SendAnswer",
    "SessionAnswer",
    "SessionKey",
    "SessionSystem",
    "SessionsHistory",
    "SessionsList",
    "SessionsSearch",
    "SessionsSend",
    "SessionsSpawn",
    "ShowAnswer",
    "SimulatedRuntime",
    "Smell",
    "SmellRule",
    "SmellingAnswer",
    "SmellsAnswer",
    "SpawnAnswer",
    "StateAnswer",
    "StoreBusy",
    "StoreFull",
    "StoreLocked",
    "StoreUnavailable",
    "Stuck",
    "ToolRefused",
    "Turn",
    "UnknownAgent",
    "UnknownMessage",
    "UnknownPlace",
    "UnknownTopic",
    "UnknownWord",
    "Usage",
    "WaitedInHandler",
    "WhyAnswer",
    "WriterSuperseded",
    "console_channel",
    "echo",
    "load_config",
    "open_log",
    "openai_agent",
    "pydantic_ai_agent",
    "replay_file",
    "scripted",
]
