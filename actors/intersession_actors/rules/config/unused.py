"""The original's keys that nothing here reads: ignored ones, and restrictions, which are refused (CFG-1)."""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, NamedTuple

from intersession_actors.rules.errors import ConfigProblem
from intersession_events.basics.plain_json import JsonValue, is_list_like, is_object

_LONG: Final = 8


class Restriction(NamedTuple):
    """The restriction by a setting of the original that is not enforced here, its replacement, and its harmless value."""

    restricts: str
    instead: str
    allows: Callable[[JsonValue], bool] | None = None

    @property
    def refusal(self) -> str:
        """The problem of a configuration that has it."""
        return f"restricts {self.restricts} in the original, and nothing here would; {self.instead}"

    def is_in(self, value: JsonValue) -> bool:
        """Whether a value restricts anything: an empty one does not."""
        return not _is_empty(value) and not (self.allows is not None and self.allows(value))


def restrictions_of_channel(settings: JsonValue, path: str) -> Iterator[ConfigProblem]:
    """Yield restrictions in a channel's settings that are not enforced here, at any depth, misspelt as well."""
    for key, value in settings.items() if is_object(settings) else ():
        for ours in ("enabled", "threadBindings"):
            if key != ours and value is not True and _folded(str(key)) in {ours.lower(), ours.lower()[:-1]}:
                yield ConfigProblem(f"{path}.{key}", f"did you mean {ours}?")
    left: list[tuple[str, JsonValue]] = [(path, settings)]
    while left:
        place, value = left.pop()
        for key, inner in value.items() if is_object(value) else ():
            at = f"{place}.{key}"
            name = _meant(str(key))
            if name is not None and OF_CHANNELS[name].is_in(inner):
                also = "" if name == key else f"is like {name}, which "
                yield ConfigProblem(at, also + OF_CHANNELS[name].refusal)
            else:
                left.append((at, inner))
        if is_list_like(value):
            left.extend((f"{place}[{index}]", inner) for index, inner in enumerate(value))


def _meant(key: str) -> str | None:
    """Return the restriction of a channel that a key is or is misspelt from."""
    names = {name.lower(): name for name in OF_CHANNELS}
    folded = _folded(key)
    # A word of a few letters is like too many others, and a chat's `channel` is no list of them.
    long = [name for name in names if len(name) >= _LONG and name != "channels"]
    close = [folded] if folded in names else get_close_matches(folded, long, n=1, cutoff=0.87)
    return names[close[0]] if close else None


def _folded(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def _is_empty(value: JsonValue) -> bool:
    if is_object(value):
        return all(map(_is_empty, value.values()))
    return value == "" or (is_list_like(value) and not value)


def _off(value: JsonValue) -> bool:
    return value is False or (is_object(value) and value.get("enabled") is False)


def _on(value: JsonValue) -> bool:
    return value is True


def _rw(value: JsonValue) -> bool:
    return bool(value == "rw")


def _any_acp(value: JsonValue) -> bool:
    return is_object(value) and value.get("enabled") is not False and not value.get("allowedAgents")


def _warns(value: JsonValue) -> bool:
    return is_object(value) and value.get("mode") == "warn"


def _takes_commands(value: JsonValue) -> bool:
    return is_object(value) and value.get("text") is not False


def _shown(value: JsonValue) -> bool:
    """Whether what an agent says is shown by itself: `message_tool` keeps it, unless the agent sends it."""
    return value is True or bool(value == "automatic")


def _shown_in_groups(value: JsonValue) -> bool:
    return is_object(value) and _shown(value.get("visibleReplies", True))


def _calls_directly(value: JsonValue) -> bool:
    return is_object(value) and value.keys() <= {"allowPrivateNetwork", "auth", "headers"}


def _open_dm(value: JsonValue) -> bool:
    if not is_object(value):
        return True
    on = all(value.get(key, True) is True for key in ("enabled", "groupEnabled"))
    return on and value.get("policy", "open") == "open"


def _a_switch(value: JsonValue) -> bool:
    return isinstance(value, bool)


def _all(value: JsonValue) -> bool:
    return bool(value == "all")


def _each_message(value: JsonValue) -> bool:
    return bool(value == "onmessage")


def _open(value: JsonValue) -> bool:
    return bool(value == "open") or (is_list_like(value) and "*" in value)


_CONTAINER: Final = """
    backend browser perSession prune scope ssh workspaceRoot
"""

_PER_AGENT: Final = """
    additionalSystemPrompt agentDir bootstrapMaxChars bootstrapTotalMaxChars contextInjection contextLimits
    contextPruning cwd decisionModel description embeddedAgent embeddedPi experimental fastModeDefault groupChat heartbeat
    humanDelay identity imageModel memory memorySearch params plugins reasoningDefault runtime
    skills skillsLimits toolProgressDetail tts typingIntervalSeconds typingMode utilityModel verboseDefault
"""

_COMPACTION: Final = """
    identifierPolicy maxActiveTranscriptBytes memoryFlush midTurnPrecheck notifyUser postCompactionSections
    postIndexSync provider qualityGuard recentTurnsPreserve thinkingLevel
"""

_TOOLS: Final = """
    codeMode elevated exec fs github links loopDetection media message swarm toolSearch updatePlan web
"""

IGNORED: Final[Mapping[str, frozenset[str]]] = {
    place: frozenset(keys.split())
    for place, keys in {
        "": """
            $schema approvals audio auth broadcast browser canvasHost cli cloudWorkers crestodian desktop diagnostics
            discovery env heartbeat hooks identity media memory meta nodeHost plugins secrets security skills
            surfaces talk telemetry tts ui update web wizard worktreeAcceleration worktreeRoot worktrees
        """,
        "cron": """
            failureAlert failureDestination maxConcurrentRuns retry runLog sessionRetention store triggers webhook
            webhookSsrfPolicy webhookToken
        """,
        "cron.jobs.*": "createdAtMs deleteAfterRun description id state updatedAtMs wakeMode",
        "session": """
            groupScope heartbeatIdleMinutes maxRecentTurns notifyOnCreate parentForkMaxTokens sharing store
            typingIntervalSeconds typingMode
        """,
        "messages": """
            ackReaction ackReactionScope inbound messagePrefix removeAckAfterReply responsePrefix responseUsage
            statusReactions suppressToolErrors tts usageTemplate
        """,
        "messages.queue": "debounceMs debounceMsByChannel drop",
        "session.threadBindings": "defaultSpawnContext",
        "channels.*.threadBindings": "defaultSpawnContext",
        "transcripts": "autoStart enabled",
        "agents": "ownership",
        "tools": _TOOLS,
        "agents.defaults": _PER_AGENT
        + """
            authInheritance blockStreamingBreak blockStreamingChunk blockStreamingCoalesce blockStreamingDefault
            bootstrapPromptTruncationWarning cliBackends elevatedDefault envelopeElapsed envelopeTimestamp
            envelopeTimezone imageGenerationModel imageMaxDimensionPx imageQuality maxConcurrent mediaMaxMb mediaModels
            modelSelectionScope pdfMaxBytesMb pdfMaxMb pdfMaxPages pdfModel repoRoot sessionStore silentReply
            skipBootstrap skipOptionalBootstrapFiles startupContext timeFormat userTimezone voiceModel
        """,
        "agents.defaults.subagents": "announceTimeoutMs delegationMode maxConcurrent",
        "agents.defaults.compaction": _COMPACTION,
        "agents.defaults.sandbox": _CONTAINER,
        "agents.list[]": _PER_AGENT,
        "agents.list[].compaction": _COMPACTION,
        "agents.list[].subagents": "delegationMode",
        "agents.list[].sandbox": _CONTAINER,
        "agents.list[].tools": _TOOLS,
        "gateway": """
            allowRealIpFallback channelHealthCheckMinutes channelMaxRestartsPerHour channelStaleEventThresholdMinutes
            cliAgents http mode nodes portals publicOrigin push reload remote tailscale terminal webchat
        """,
        "gateway.auth": "allowTailscale identityScopes rateLimit trustedProxy",
        "gateway.controlUi": """
            allowExternalEmbedUrls allowInsecureAuth automaticallyFetchFavicons basePath communityInvite
            dangerouslyAllowHostHeaderOriginFallback dangerouslyDisableDeviceAuth embedSandbox environment experimental
            github root sessionObserver
        """,
        "mcp": "apps sessionIdleTtlMs",
        "mcp.servers.*": "auth clientCert clientKey oauth sslVerify supportsParallelToolCalls",
        "models": "bedrockDiscovery catalogRefresh",
        "logging": "audit consoleLevel consoleStyle file maxFileBytes redactSensitive",
    }.items()
}
"""By place (`agents.list[]`: any agent), the keys there that mean nothing here and restrict nothing that happens here."""

_BY_SENDER: Final = Restriction(
    "tools by the sender", 'take it out, and name those people in tools.toolsBySender, as "CHANNEL:ID"'
)
_MODELS: Final = "take it out, and list the models for all agents in agents.defaults.models"
_CONFINE: Final = "take it out, and confine the process of your agents yourself"
_SANDBOX_REFUSED: Final[Mapping[str, Restriction]] = {
    "docker": Restriction("what a container may do", _CONFINE),
    "workspaceAccess": Restriction("an agent's files", _CONFINE, _rw),
}
_ACP_THREADS: Final[Mapping[str, Restriction]] = {
    "spawnAcpSessions": Restriction(
        "threads for acp sessions",
        "take it out; spawnSubagentSessions holds for both",
        _on,
    )
}
_REPLIES: Final = Restriction(
    "which replies are shown",
    "take it out (visibleReplies), and hold or drop texts in your host's channel",
    _shown,
)
_RETENTION: Final = "take it out, and set `retention`, which erases by age"

REFUSED: Final[Mapping[str, Mapping[str, Restriction]]] = {
    "": {
        "acp": Restriction(
            "sub-agents of the runtime acp",
            "take it out; where the host registers no such runtime there are none",
            _any_acp,
        ),
        "bindings": Restriction(
            "which agent a person reaches", "take it out, and give inbound an agent_id in your host"
        ),
        "accessGroups": Restriction(
            "who may write", "take it out, and let your host call inbound for those people alone"
        ),
        "attachments": Restriction("how long files are kept", _RETENTION),
        "commands": Restriction(
            "commands in chats",
            "take it out (commands.text), and call nobody an owner in your host",
            _takes_commands,
        ),
        "proxy": Restriction("where calls may go", "take it out, and limit the process's network", _off),
    },
    "session": {
        "maintenance": Restriction(
            "how long sessions are kept",
            _RETENTION,
            _warns,
        ),
        "transcriptRetentionDays": Restriction("how long transcripts are kept", _RETENTION),
    },
    "session.threadBindings": _ACP_THREADS,
    "channels.*.threadBindings": _ACP_THREADS,
    "agents.defaults": {"modelPolicy": Restriction("models", _MODELS)},
    "agents.defaults.sandbox": _SANDBOX_REFUSED,
    "agents.list[]": {
        "modelPolicy": Restriction("models", _MODELS),
        "models": Restriction("this agent's models", _MODELS),
    },
    "agents.list[].sandbox": _SANDBOX_REFUSED,
    "gateway": {
        "roles": Restriction(
            "what people may see and do", "take it out, and give each a credential: gateway.auth.credentials"
        ),
        "tls": Restriction("who can read along", "take it out, and put a proxy with TLS before it", _off),
    },
    "messages": {"groupChat": _REPLIES._replace(allows=_shown_in_groups), "visibleReplies": _REPLIES},
    "mcp.servers.*": {
        "codex": Restriction(
            "which agents have its tools",
            "take it out, and deny them to the others: agents.list[].tools.deny",
        )
    },
    "models.providers.*": {
        "request": Restriction(
            "how a provider is reached", "take it out, and limit the process's network", _calls_directly
        )
    },
    "logging": {
        "redactPatterns": Restriction(
            "what is shown of texts with secrets", "take it out; what is hidden is listed in the reference"
        )
    },
}
"""By place, the keys there that restrict something that happens here, and that nothing here reads."""


_SENDERS: Final = Restriction(
    "who may write", "take it out, and let your host call inbound for those people alone", _open
)
_CHATS: Final = Restriction(
    "which chats are answered", "take it out, and let your host call inbound for those chats alone"
)
_SENDERS_OF: Final = """
    allowFrom allowedRoles allowedShips defaultAuthorizedShips dmAllowlist dmPolicy friends groupAllowFrom groupPolicy
    groupSenderAllowFrom peers requestPolicy users
"""
_CHATS_OF: Final = "allowedChannels exposeAgents groups guilds rooms teams"
_MENTIONS_OF: Final = "allowlistOnly ignoreOtherMentions requireMention requireTopic requireWakeName"
OF_CHANNELS: Final[Mapping[str, Restriction]] = {
    **dict.fromkeys(_SENDERS_OF.split(), _SENDERS),
    **dict.fromkeys(_CHATS_OF.split(), _CHATS),
    **dict.fromkeys(_MENTIONS_OF.split(), _CHATS._replace(allows=_off)),
    "channels": _CHATS._replace(allows=_a_switch),
    "chatmode": _CHATS._replace(allows=_each_message),
    "contextVisibility": Restriction(
        "whose words an agent is shown", "take it out, and let your host pass on theirs alone", _all
    ),
    "dm": _SENDERS._replace(allows=_open_dm),
    "roles": _SENDERS._replace(allows=_a_switch),
    **dict.fromkeys(
        ["toolPolicy", "tools", "toolsAllow"],
        Restriction("tools by chat", _BY_SENDER.instead),
    ),
    "toolsBySender": _BY_SENDER,
}
"""The keys below `channels.<name>`, at any depth, that restrict something that happens here, and that nothing here reads."""
