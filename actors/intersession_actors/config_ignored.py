"""Keys of the original's configuration that mean nothing here (CFG-1): they are accepted, with one notice."""

from collections.abc import Mapping
from typing import Final

_TOP: Final = """
    $schema acp approvals audio auth bindings broadcast browser canvasHost cli commands crestodian cron diagnostics
    discovery env heartbeat hooks identity mcp media memory messages meta nodeHost plugins proxy secrets skills talk tts
    ui update web wizard worktrees
"""
_PER_AGENT: Final = """
    additionalSystemPrompt agentDir bootstrapMaxChars bootstrapTotalMaxChars contextInjection contextLimits
    contextPruning contextTokens description embeddedAgent embeddedPi experimental fastModeDefault groupChat heartbeat
    humanDelay identity imageModel memory memorySearch modelPolicy models params plugins reasoningDefault runtime
    skills skillsLimits toolProgressDetail tts typingIntervalSeconds typingMode utilityModel verboseDefault
"""
_SANDBOX: Final = """
    backend browser docker perSession prune scope ssh workspaceAccess workspaceRoot
"""
_TOOLS: Final = """
    byProvider codeMode elevated exec fs links loopDetection media message swarm toolSearch toolsBySender web
"""

IGNORED: Final[Mapping[str, frozenset[str]]] = {
    place: frozenset(keys.split())
    for place, keys in {
        "": _TOP,
        "session": """
            idleMinutes maintenance maxRecentTurns parentForkMaxTokens reset resetByChannel resetByType resetTriggers
            store transcriptRetentionDays typingIntervalSeconds typingMode heartbeatIdleMinutes
        """,
        "session.threadBindings": "spawnAcpSessions",
        "channels.*.threadBindings": "spawnAcpSessions",
        "tools": _TOOLS,
        "agents.defaults": _PER_AGENT.replace(" models", "")
        + """
            blockStreamingBreak blockStreamingChunk blockStreamingCoalesce blockStreamingDefault
            bootstrapPromptTruncationWarning cliBackends compaction elevatedDefault envelopeElapsed envelopeTimestamp
            envelopeTimezone imageGenerationModel imageMaxDimensionPx maxConcurrent mediaMaxMb pdfMaxBytesMb pdfMaxPages
            pdfModel repoRoot skipBootstrap timeFormat userTimezone
        """,
        "agents.defaults.subagents": "announceTimeoutMs delegationMode maxConcurrent requireAgentId",
        "agents.defaults.sandbox": _SANDBOX,
        "agents.list[]": _PER_AGENT,
        "agents.list[].subagents": "delegationMode requireAgentId",
        "agents.list[].sandbox": _SANDBOX,
        "agents.list[].tools": _TOOLS,
        "gateway": """
            allowRealIpFallback channelHealthCheckMinutes channelMaxRestartsPerHour channelStaleEventThresholdMinutes
            http mode nodes push reload remote tailscale tls trustedProxies webchat
        """,
        "gateway.auth": "allowTailscale rateLimit trustedProxy",
        "gateway.controlUi": """
            allowExternalEmbedUrls allowInsecureAuth basePath dangerouslyAllowHostHeaderOriginFallback
            dangerouslyDisableDeviceAuth embedSandbox root
        """,
        "models": "bedrockDiscovery",
        "logging": "consoleLevel consoleStyle file maxFileBytes redactPatterns redactSensitive",
    }.items()
}
"""By place (`agents.list[]`: any agent), the keys there that mean nothing here."""
