"""The configuration: its settings, how it is read and checked, and how it is shown without its secrets."""

from intersession_actors.config.agents import SessionToolsVisibility
from intersession_actors.config.config import Config, load_config
from intersession_actors.config.host import Checkpoints, Gateway, GatewayAuth, Logging, OperatorScope, Tracing
from intersession_actors.config.read import read_config_file
from intersession_actors.config.redacted import config_digest, has_secrets, plain_config
from intersession_actors.config.session import SendAction, SendMatch, SendPolicy, SendRule
from intersession_actors.config.settings import (
    ModelChoice,
    ThinkingLevel,
    ToolRules,
    milliseconds,
    primary_of,
)
from intersession_actors.config.tools import (
    SESSION_TOOLS,
    AgentTools,
    AttachmentRules,
    ToolProfile,
    ToolSettings,
    Visibility,
    names_tool,
)

__all__ = [
    "SESSION_TOOLS",
    "AgentTools",
    "AttachmentRules",
    "Checkpoints",
    "Config",
    "Gateway",
    "GatewayAuth",
    "Logging",
    "ModelChoice",
    "OperatorScope",
    "SendAction",
    "SendMatch",
    "SendPolicy",
    "SendRule",
    "SessionToolsVisibility",
    "ThinkingLevel",
    "ToolProfile",
    "ToolRules",
    "ToolSettings",
    "Tracing",
    "Visibility",
    "config_digest",
    "has_secrets",
    "load_config",
    "milliseconds",
    "names_tool",
    "plain_config",
    "primary_of",
    "read_config_file",
]
