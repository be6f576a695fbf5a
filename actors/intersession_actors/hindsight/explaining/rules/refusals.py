"""Why calls are refused: a rule for every code that there is. Pure."""

from collections.abc import Mapping
from typing import Final

from intersession_actors.hindsight.explaining.explanation import Rule
from intersession_actors.rules.errors import RefusalCode

_FILES: Final = "tools.sessions_spawn.attachments"

REFUSALS: Final[Mapping[RefusalCode, Rule]] = {
    "invalid_request": Rule(
        "SEND-1", "a call says what its tool asks for, and nothing else", "see the error"
    ),
    "too_large": Rule("SEND-1", "a text has at most the size that its limit says", "a shorter one"),
    "invalid_key": Rule("KEY-6", "a session is named by a key, an id or a label", "a key as lists show it"),
    "not_visible": Rule(
        "HIST-6",
        "a session that is absent and one that may not be seen are answered alike",
        "a session that is there, and that tools.sessions.visibility lets be seen",
    ),
    "forbidden": Rule(
        "HIST-6",
        "another agent's sessions are closed unless the settings open them",
        "tools.sessions.visibility all, tools.agentToAgent.enabled, and both agents in tools.agentToAgent.allow",
    ),
    "self_send": Rule("SEND-2", "a session does not send to itself", "an answer in its own reply"),
    "cycle": Rule(
        "SEND-10",
        "nobody waits for a session that waits for them",
        "timeoutSeconds 0, which waits for nobody",
    ),
    "limit": Rule(
        "LOOP-5",
        "the guards over a causal chain stop what would go on for ever",
        "a higher limit in session.agentToAgent.limits, or 0 for none",
    ),
    "policy_denied": Rule("SEND-12", "the send policy forbids it", "a rule, or an override, that allows it"),
    "ambiguous_label": Rule(
        "SEND-1", "a label or a beginning names one session", "one of the keys in the error"
    ),
    "idempotency_conflict": Rule(
        "SEND-11", "an idempotency key stands for one request for ever", "a new key for other words"
    ),
    "unknown_run": Rule(
        "GATE-3", "a run is asked for by an id that the log knows", "an id as answers give it"
    ),
    "unknown_agent": Rule("KEY-9", "an agent is configured or registered", "an agent that is there"),
    "old_generation": Rule(
        "KEY-5", "an earlier generation of a session can be read, not spoken to", "the session's key"
    ),
    "main_session": Rule("GATE-2", "a main session is not deleted", "sessions.reset"),
    "agent_not_allowed": Rule(
        "SPAWN-2",
        "an agent starts its own kind, and those in agents.list[].subagents.allowAgents",
        "the agent in that list",
    ),
    "subagent_spawn": Rule(
        "SPAWN-3", "sub-agents start no sub-agents", "a higher agents.defaults.subagents.maxSpawnDepth"
    ),
    "spawn_limit": Rule(
        "SPAWN-3",
        "a session has at most agents.defaults.subagents.maxChildrenPerAgent sub-agents at work",
        "one that ends first, or a higher limit",
    ),
    "sandbox_inherit": Rule(
        "SPAWN-5", "a sandboxed session starts no agent that is not", "an agent that is sandboxed, too"
    ),
    "sandbox_required": Rule(
        "SPAWN-5", 'sandbox "require" refuses an agent that is not sandboxed', "an agent that is sandboxed"
    ),
    "not_approved": Rule(
        "ASK-2",
        "a call that tools.ask names waits until a person releases it",
        "a release in time, or a tools.ask that does not name it",
    ),
    "invalid_model": Rule("SPAWN-4", "a model is one that is configured", "one of those in the error"),
    "invalid_thinking": Rule(
        "SPAWN-4", "a level of thinking is one of those there are", "one of those in the error"
    ),
    "no_threads": Rule(
        "SPAWN-12", "a thread needs a channel that has them", "another channel, or thread false"
    ),
    "not_supported": Rule("SPAWN-1", "what is not supported here is refused, not ignored", "see the error"),
    "invalid_name": Rule("ATT-2", "the name of a file is one plain name", "such a name"),
    "duplicate_name": Rule("ATT-2", "no two files have one name, in any case of letters", "another name"),
    "invalid_base64": Rule("ATT-2", "what is said to be base64 is", "strict base64, or encoding utf8"),
    "file_count_exceeded": Rule(
        "ATT-1", f"at most {_FILES}.maxFiles files", "fewer files, or a higher limit"
    ),
    "file_bytes_exceeded": Rule(
        "ATT-1", f"at most {_FILES}.maxFileBytes a file", "a smaller file, or a higher limit"
    ),
    "total_bytes_exceeded": Rule(
        "ATT-1", f"at most {_FILES}.maxTotalBytes in all", "less, or a higher limit"
    ),
    "unsafe_path": Rule(
        "ATT-3", "files are put below the workspace, past no link", "a workspace without links"
    ),
    "not_started": Rule(
        "SPAWN-12", "a sub-agent does not start without what it needs", "another spawn, with a key of its own"
    ),
    "export_failed": Rule("EXP-1", "an export writes over nothing that is there", "see the error"),
    "import_failed": Rule("IMP-1", "an import reads a state directory", "see the error"),
    "busy": Rule(
        "GATE-4", "a session that has too much to do takes no more", "another time, or a higher runs.inboxMax"
    ),
    "run_over": Rule(
        "WORK-5",
        "what an agent does in an attempt that is over is refused",
        "a worker that was heard of in time",
    ),
    "unavailable": Rule("SEND-3", "what is not durable is not accepted", "a store that takes it"),
    "unreadable": Rule(
        "HIST-6", "what was changed in the log is not shown as if it were said", "a log that is whole"
    ),
    "internal": Rule(
        "SEND-3", "a call that fails in a way nobody foresaw leaves nothing behind", "see the log"
    ),
}
