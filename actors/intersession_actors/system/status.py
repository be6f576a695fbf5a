"""How a system is, for `status`: the head of the log, who is awake, who is degraded, what waits, what was set aside."""

import msgspec

from intersession_actors.agents import is_agent, runner_of
from intersession_actors.system.assembly import Assembly
from intersession_actors.system.open_work import open_work
from intersession_actors.system.settings import Settings
from intersession_events.plain_json import JsonObject


def status_of(parts: Assembly, settings: Settings) -> JsonObject:
    """Return how a system is."""
    log, reports = parts.service.log, parts.reports
    return {
        "logId": log.log_id,
        "epoch": log.epoch,
        "position": log.head(),
        "store": {"available": reports.store_error is None, "error": reports.store_error},
        "agents": [runner for runner in parts.executor.registered if is_agent(runner)],
        "channels": list(parts.caller.registered),
        "liveSessions": parts.supervisor.live_sessions,
        "degraded": parts.supervisor.degraded,
        "zombies": parts.executor.zombies,
        "channelZombies": parts.caller.zombies,
        "channelCalls": msgspec.to_builtins(parts.caller.calls),
        "failures": reports.counts,
        "checkpoints": parts.checkpointer.status,
        "setAside": [msgspec.to_builtins(item) for item in log.set_aside()],
        **open_work(
            parts.service.reader,
            has_channel=parts.caller.has,
            has_agent=lambda key: parts.executor.has(runner_of(key)),
        ),
        "notices": list(settings.notices),
        "configError": settings.error,
    }
