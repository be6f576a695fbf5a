"""Intersession: session tools for AI agents, on an event-sourced log that can be replayed, stepped and proven.

from intersession import SessionSystem, Turn, Reply
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from intersession_actors.agents import Reply, Turn, echo, openai_agent, scripted
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
    from intersession_actors.channels import (
        Channel,
        DeliveryInDoubt,
        DeliveryRefused,
        MemoryChannel,
        Outbound,
        console_channel,
    )
    from intersession_actors.config import Config, load_config
    from intersession_actors.debugger import (
        Change,
        ChangesAnswer,
        Debugger,
        DeliveriesAnswer,
        DiffAnswer,
        EffectsAnswer,
        EventsAnswer,
        LensAnswer,
        MessagesAnswer,
        OpenLog,
        OriginAnswer,
        PlaceAnswer,
        RunsAnswer,
        SearchAnswer,
        ShowAnswer,
        SmellingAnswer,
        SmellsAnswer,
        StateAnswer,
        WhyAnswer,
        open_log,
    )
    from intersession_actors.errors import CalledOnLoop, ConfigError, ToolRefused, UnknownAgent
    from intersession_actors.failures import Failure
    from intersession_actors.forking import Carried
    from intersession_actors.holding import GoingOn, HoldRule
    from intersession_actors.methods import ReleaseFields
    from intersession_actors.replaying import Difference, Replayed, replay_file
    from intersession_actors.runtime import HandlerFailed, InboxFull, RuntimeStopped, WaitedInHandler
    from intersession_actors.service import InboundFields
    from intersession_actors.simulation import SimulatedRuntime, Stuck
    from intersession_actors.system import As, Inbound, SessionSystem
    from intersession_actors.tools import (
        AgentsList,
        SessionsHistory,
        SessionsList,
        SessionsSearch,
        SessionsSend,
        SessionsSpawn,
    )
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
    from intersession_events.keys import SessionKey
    from intersession_projections.places import UnknownPlace
    from intersession_projections.sessions import UnknownMessage
    from intersession_projections.smells import Seen, Smell, SmellRule

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
    "replay_file",
    "scripted",
]

_HOMES: Final = {
    name: home
    for home, names in {
        "intersession_actors.agents": "Reply Turn echo openai_agent scripted",
        "intersession_actors.answers": """
            AcceptedAnswer AgentsAnswer ChatHistoryAnswer HistoryAnswer HoldAnswer InboundAnswer ListAnswer
            ReleaseAnswer RunAnswer SearchedAnswer SendAnswer SessionAnswer SpawnAnswer
        """,
        "intersession_actors.channels": """
            Channel DeliveryInDoubt DeliveryRefused MemoryChannel Outbound console_channel
        """,
        "intersession_actors.config": "Config load_config",
        "intersession_actors.debugger": """
            Change ChangesAnswer Debugger DeliveriesAnswer DiffAnswer EffectsAnswer EventsAnswer LensAnswer
            MessagesAnswer OpenLog OriginAnswer PlaceAnswer RunsAnswer SearchAnswer ShowAnswer SmellingAnswer SmellsAnswer StateAnswer WhyAnswer open_log
        """,
        "intersession_actors.errors": "CalledOnLoop ConfigError ToolRefused UnknownAgent",
        "intersession_actors.failures": "Failure",
        "intersession_actors.forking": "Carried",
        "intersession_actors.holding": "GoingOn HoldRule",
        "intersession_actors.methods": "ReleaseFields",
        "intersession_actors.replaying": "Difference Replayed replay_file",
        "intersession_actors.runtime": "HandlerFailed InboxFull RuntimeStopped WaitedInHandler",
        "intersession_actors.service": "InboundFields",
        "intersession_actors.simulation": "SimulatedRuntime Stuck",
        "intersession_actors.system": "As Inbound SessionSystem",
        "intersession_actors.tools": """
            AgentsList SessionsHistory SessionsList SessionsSearch SessionsSend SessionsSpawn
        """,
        "intersession_events.errors": """
            AlteredLog AppendConflict BackupFailed BadCheckpoint BadKey CorruptEvent ExportFailed ForgedTopic
            ForkFailed ForkedStoreError ImportFailed IntersessionError InvalidKey LogError LogTooNew
            MigrationFailed MissingExtra NoSuchStore NotALog NotStorable Sealed StoreBusy StoreFull StoreLocked StoreUnavailable
            UnknownTopic UnknownWord WriterSuperseded
        """,
        "intersession_events.facts": "ForkEdit Message Usage",
        "intersession_events.keys": "SessionKey",
        "intersession_projections.places": "UnknownPlace",
        "intersession_projections.sessions": "UnknownMessage",
        "intersession_projections.smells": "Seen Smell SmellRule",
    }.items()
    for name in names.split()
}
"""Where each name lives. It is loaded when it is first asked for: a command that shows its help needs no actors and no store."""


def __getattr__(name: str) -> Any:  # whatever the name stands for
    """Load a public name."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
