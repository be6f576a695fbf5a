"""Why loops, announces, exchanges and spawns end as they do: a rule for every reason that there is. Pure."""

from collections.abc import Mapping
from typing import Final, Literal

from intersession_actors.hindsight.explaining.explanation import Rule
from intersession_events.facts import ArchiveReason, CloseReason, LoopEnd, SpawnClose, UnbindReason

Silence = Literal[
    "text", "announce_skip", "no_text", "run_failed", "not_routed", "child_failed", "limit", "dropped"
]
"""What `AnnounceDecided.why` can say."""

_CHAIN: Final = "the guards over a causal chain (session.agentToAgent.limits) stop what would go on for ever"

LOOP_ENDS: Final[Mapping[LoopEnd, Rule]] = {
    "reply_skip": Rule(
        "LOOP-2", "an agent that answers exactly REPLY_SKIP has nothing to add", "any other text goes on"
    ),
    "no_text": Rule("LOOP-2", "a turn without a text ends the loop", "any text goes on"),
    "turn_limit": Rule(
        "LOOP-2",
        "no more turns than session.agentToAgent.maxPingPongTurns are asked for",
        "a higher limit, up to 5; at 5, another sessions_send goes on",
    ),
    "turn_failed": Rule(
        "LOOP-2", "a turn that failed, or could not be asked for, ends the loop", "a turn that is answered"
    ),
    "turn_timeout": Rule(
        "LOOP-7",
        "a turn has session.agentToAgent.turnTimeoutSeconds from its start",
        "an answer in time, or a longer limit",
    ),
    "policy_denied": Rule(
        "LOOP-2", "no turn is asked for that the send policy forbids by then", "a policy that allows it"
    ),
    "one_way": Rule(
        "LOOP-4",
        "session.agentToAgent.oneWay gets no replies back for this kind of session",
        "a list of oneWay without this kind",
    ),
    "no_requester": Rule(
        "LOOP-4", "a call of the operator has no session that could reply back", "a call by a session"
    ),
    "no_agent": Rule(
        "KEY-9", "a turn needs an agent that is registered in this process", "an agent registered for it"
    ),
    "requester_gone": Rule(
        "HIST-6",
        "turns go to the generation of the asking session that sent, or to nobody",
        "a session that was not deleted or reset meanwhile",
    ),
    "target_gone": Rule(
        "HIST-6",
        "turns go to the generation of the asked session that was asked, or to nobody",
        "a session that was not deleted or reset meanwhile",
    ),
    "hop_limit": Rule("LOOP-5", _CHAIN, "a higher session.agentToAgent.limits.hops, or 0 for none"),
    "revisit_limit": Rule("LOOP-5", _CHAIN, "a higher session.agentToAgent.limits.revisits, or 0 for none"),
    "run_limit": Rule("LOOP-5", _CHAIN, "a higher session.agentToAgent.limits.runs, or 0 for none"),
    "token_limit": Rule("LOOP-5", _CHAIN, "a higher session.agentToAgent.limits.tokens, or 0 for none"),
    "cost_limit": Rule("LOOP-5", _CHAIN, "a higher session.agentToAgent.limits.costMicros, or 0 for none"),
    "wall_limit": Rule("LOOP-5", _CHAIN, "a higher session.agentToAgent.limits.wallSeconds, or 0 for none"),
    "aborted": Rule("GATE-5", "an abort ends the turn, and with it the loop", "no abort"),
    "dropped": Rule(
        "LIVE-1", "a held reply that is dropped is as if it had not been said", "a release with the text"
    ),
    "ended": Rule("LIVE-1", "whoever releases an exchange may end it", "a release that lets it go on"),
    "inferred": Rule(
        "IMP-4", "the imported record shows no further turn, and not why", "a record that shows more"
    ),
}

SILENCES: Final[Mapping[Silence, Rule]] = {
    "text": Rule("ANN-1", "any text but ANNOUNCE_SKIP is announced", "ANNOUNCE_SKIP, or no text"),
    "announce_skip": Rule(
        "ANN-1", "an agent that answers exactly ANNOUNCE_SKIP keeps silent", "any other text is announced"
    ),
    "no_text": Rule("ANN-1", "an announce turn without a text keeps silent", "any text is announced"),
    "run_failed": Rule(
        "ANN-1", "an announce turn that failed, or could not be asked for, says nothing", "an answer"
    ),
    "not_routed": Rule(
        "ANN-2",
        'session.agentToAgent.announce is "routed", and the asked session had no route',
        'a route, or session.agentToAgent.announce "always"',
    ),
    "child_failed": Rule(
        "SPAWN-9",
        "a sub-agent that failed is not asked again: what it left is announced for it",
        "a task done",
    ),
    "limit": Rule("LOOP-5", _CHAIN, "a higher limit in session.agentToAgent.limits, or 0 for none"),
    "dropped": Rule("LIVE-1", "a held announce that is dropped is not made", "a release with the text"),
}

RESETS: Final[Mapping[str, Rule]] = {
    "daily": Rule(
        "RESET-2",
        "a person's message finds a conversation over that began before the last atHour",
        "no daily reset for that chat in session.reset, resetByType or resetByChannel",
    ),
    "idle": Rule(
        "RESET-2",
        "a person's message finds a conversation over in which no person spoke for idleMinutes",
        "more idleMinutes for that chat in session.reset, resetByType or resetByChannel",
    ),
}

CLOSES: Final[Mapping[CloseReason | SpawnClose, Rule]] = {
    "announced": Rule("ANN-3", "the channel took the announce", ""),
    "silent": Rule("ANN-1", "nothing was to be announced", "a text in the announce turn"),
    "no_route": Rule(
        "ANN-2",
        "an announce goes to the route that was there when the request was accepted, and there was none",
        "a person's message in that session before, which gives it a route",
    ),
    "no_reply": Rule(
        "SEND-5", "a reply without visible text gets no loop and no announce", "a reply with a text"
    ),
    "run_failed": Rule(
        "SEND-7", "a request whose run fails gets no loop and no announce", "a run that answers"
    ),
    "announce_failed": Rule(
        "ANN-3", "the announce could not be made, or its channel gave up on it", "see the note"
    ),
    "announce_denied": Rule(
        "ANN-4",
        "the send policy is asked again at delivery, and forbade it by then",
        "a policy that allows it",
    ),
    "delivery_unknown": Rule(
        "ANN-3",
        "a channel that can't take a text twice is not called again when it is in doubt whether it has it",
        "a channel that takes an idempotency key, or no stop in the middle of the call",
    ),
    "withheld": Rule(
        "FORK-5",
        "the announce would be delivered, and the channels of a fork are sealed",
        "a fork whose `--deliver` names the channel",
    ),
    "target_gone": Rule(
        "HIST-6",
        "announces are made by the generation of the session that was asked, or by nobody",
        "a session that was not deleted or reset meanwhile",
    ),
    "aborted": Rule("GATE-5", "an abort ends the run, and with it what waits for it", "no abort"),
    "dropped": Rule(
        "LIVE-1",
        "a held reply that is dropped is as if it had not been said: there is no loop and no announce",
        "a release with the text",
    ),
    "ended": Rule("LIVE-1", "whoever releases an exchange may end it", "a release that lets it go on"),
    "handed_over": Rule(
        "SPAWN-9",
        "a result whose requester has no route is handed to its session, and its agent runs on it",
        "a route of the requester at the time of the spawn",
    ),
    "returned": Rule(
        "CHILD-1",
        "a result that came while the call waited for it is its answer, and not announced",
        "a shorter wait",
    ),
    "cancelled": Rule("CHILD-2", "nobody is told of a sub-agent that its requester cancelled", "no cancel"),
    "requester_gone": Rule(
        "HIST-6",
        "results go to the generation of the session that spawned, or to nobody",
        "a session that was not deleted or reset meanwhile",
    ),
    "not_started": Rule("SPAWN-12", "a sub-agent does not start without what it needs", "see the note"),
    "inferred": Rule("IMP-4", "the imported record shows no more", "a record that shows more"),
}

ARCHIVALS: Final[Mapping[ArchiveReason, Rule]] = {
    "deleted": Rule("GATE-2", "somebody deleted the session", "no sessions.delete"),
    "cleanup": Rule("SPAWN-11", 'cleanup "delete" archives when the announce is final', 'cleanup "keep"'),
    "expired": Rule(
        "SPAWN-11",
        "a kept sub-agent is archived agents.defaults.subagents.archiveAfterMinutes after its run",
        "a longer time, or 0 for never",
    ),
    "reset": Rule("GATE-2", "somebody reset the session", "no sessions.reset"),
}

UNBINDINGS: Final[Mapping[UnbindReason, Rule]] = {
    "idle": Rule(
        "SPAWN-12", "a thread that is idle for session.threadBindings.idleHours is free again", "a message"
    ),
    "max_age": Rule(
        "SPAWN-12",
        "a thread is bound for at most session.threadBindings.maxAgeHours",
        "a longer time, or 0 for ever",
    ),
    "archived": Rule("SPAWN-12", "the thread of an archived session is free again", "a session that stays"),
    "unbound": Rule("SPAWN-12", "the host unbound the thread", "no call of unbind_thread"),
}
