"""Intersession: session tools for AI agents, on an event-sourced log that can be replayed, stepped and proven.

from intersession import SessionSystem, Turn, Reply
"""

from typing import TYPE_CHECKING

from intersession_events.basics.faces import on_demand

if TYPE_CHECKING:
    from intersession.fleet.fleet import Fleet, LogUpgraded, LogVerified
    from intersession.fleet.register import FleetLog, FleetRefused
    from intersession.fleet.standing import LogStanding
    from intersession.worker.worker import Worker
    from intersession_actors.assembly.methods.holding import ReleaseCallFields, ReleaseFields
    from intersession_actors.assembly.system.pykka import As, Inbound
    from intersession_actors.assembly.system.system import SessionSystem
    from intersession_actors.calls.service.inbound import InboundFields
    from intersession_actors.calls.tools.agents_list import AgentsList
    from intersession_actors.calls.tools.sessions_history import SessionsHistory
    from intersession_actors.calls.tools.sessions_list import SessionsList
    from intersession_actors.calls.tools.sessions_search import SessionsSearch
    from intersession_actors.calls.tools.sessions_send import SessionsSend
    from intersession_actors.calls.tools.sessions_spawn import SessionsSpawn
    from intersession_actors.hindsight.debugger.answers import PlaceAnswer, StateAnswer
    from intersession_actors.hindsight.debugger.debugger import Debugger
    from intersession_actors.hindsight.debugger.diff import DiffAnswer
    from intersession_actors.hindsight.debugger.lens import LensAnswer
    from intersession_actors.hindsight.debugger.lists.deliveries import DeliveriesAnswer
    from intersession_actors.hindsight.debugger.lists.events import EventsAnswer
    from intersession_actors.hindsight.debugger.lists.messages import MessagesAnswer
    from intersession_actors.hindsight.debugger.lists.runs import RunsAnswer
    from intersession_actors.hindsight.debugger.opened import OpenLog, open_log
    from intersession_actors.hindsight.debugger.origin import OriginAnswer
    from intersession_actors.hindsight.debugger.search import SearchAnswer
    from intersession_actors.hindsight.debugger.show import ShowAnswer
    from intersession_actors.hindsight.debugger.smells import SmellingAnswer, SmellsAnswer
    from intersession_actors.hindsight.debugger.state import Change, ChangesAnswer
    from intersession_actors.hindsight.debugger.why import EffectsAnswer, WhyAnswer
    from intersession_actors.hindsight.forking.carrying import Carried
    from intersession_actors.hindsight.replaying.difference import Difference
    from intersession_actors.hindsight.replaying.replayed import Replayed, replay_file
    from intersession_actors.outside.agents.agents import echo, openai_agent, pydantic_ai_agent, scripted
    from intersession_actors.outside.agents.own_tools.mcp_servers import mcp_tools
    from intersession_actors.outside.agents.own_tools.own_tool import own_tool
    from intersession_actors.outside.agents.turn import Approval, BadPiece, Reply, ReplyTooLarge, Turn
    from intersession_actors.outside.attachments.message_files import File
    from intersession_actors.outside.attachments.stored import StoredFile
    from intersession_actors.outside.channels.channels import (
        Channel,
        DeliveryInDoubt,
        DeliveryLater,
        DeliveryRefused,
        MemoryChannel,
        Outbound,
        console_channel,
    )
    from intersession_actors.rules.answers import (
        AcceptedAnswer,
        AgentsAnswer,
        ChatHistoryAnswer,
        HistoryAnswer,
        HoldAnswer,
        InboundAnswer,
        ListAnswer,
        ReleaseAnswer,
        ReleasedCallAnswer,
        RunAnswer,
        SearchedAnswer,
        SendAnswer,
        SessionAnswer,
        SpawnAnswer,
        StreamAnswer,
    )
    from intersession_actors.rules.config.config import Config, load_config
    from intersession_actors.rules.errors import CalledOnLoop, ConfigError, ToolRefused, UnknownAgent
    from intersession_actors.rules.policy.holding import GoingOn, HoldRule
    from intersession_actors.running.failures.failure import Failure
    from intersession_actors.running.failures.findings import Finding
    from intersession_actors.running.runtime.actor import HandlerFailed
    from intersession_actors.running.runtime.inbox import InboxFull
    from intersession_actors.running.runtime.reply import WaitedInHandler
    from intersession_actors.running.runtime.runtime import RuntimeStopped
    from intersession_actors.running.simulation.greenlets import Stuck
    from intersession_actors.running.simulation.simulated import SimulatedRuntime
    from intersession_events.basics.errors import (
        AlteredLog,
        AppendConflict,
        BackupFailed,
        BadCheckpoint,
        BadKey,
        BundleFailed,
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
        LogRewritten,
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
        WorkRefused,
        WriterSuperseded,
    )
    from intersession_events.basics.keys.key import SessionKey
    from intersession_events.facts import ForkEdit, Message, Usage
    from intersession_projections.questions.places.grammar import UnknownPlace
    from intersession_projections.questions.smells.smell import Seen, Smell, SmellRule
    from intersession_projections.views.sessions.history import UnknownMessage

on_demand(globals())

__all__ = [
    "AcceptedAnswer",
    "AgentsAnswer",
    "AgentsList",
    "AlteredLog",
    "AppendConflict",
    "Approval",
    "As",
    "BackupFailed",
    "BadCheckpoint",
    "BadKey",
    "BadPiece",
    "BundleFailed",
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
    "File",
    "Finding",
    "Fleet",
    "FleetLog",
    "FleetRefused",
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
    "LogRewritten",
    "LogStanding",
    "LogTooNew",
    "LogUpgraded",
    "LogVerified",
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
    "ReleaseCallFields",
    "ReleaseFields",
    "ReleasedCallAnswer",
    "Replayed",
    "Reply",
    "ReplyTooLarge",
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
    "StoredFile",
    "StreamAnswer",
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
    "WorkRefused",
    "Worker",
    "WriterSuperseded",
    "console_channel",
    "echo",
    "load_config",
    "mcp_tools",
    "open_log",
    "openai_agent",
    "own_tool",
    "pydantic_ai_agent",
    "replay_file",
    "scripted",
]
