"""Why runs and deliveries fail: a rule for every code that there is. Pure."""

from collections.abc import Mapping
from typing import Final, Literal

from intersession_actors.hindsight.explaining.explanation import Rule
from intersession_events.facts import FailureCode

FAILURES: Final[Mapping[FailureCode, Rule]] = {
    "backend": Rule("SEND-7", "an agent that raises has failed its run", "an agent that answers"),
    "bad_reply": Rule(
        "SEND-7", "an agent answers with a text, None, a Reply or messages", "an answer of that kind"
    ),
    "reply_too_large": Rule(
        "SEND-7", "a reply has at most runs.replyMaxBytes", "a shorter reply, or a higher limit"
    ),
    "timeout": Rule(
        "LOOP-7", "every attempt has a limit, from its start", "an answer in time, or a longer limit"
    ),
    "interrupted": Rule(
        "GATE-3",
        "a run that a stop or a crash cuts off is tried again runs.retryInterrupted times",
        "a stop that waits for its runs, or a higher runs.retryInterrupted",
    ),
    "target_gone": Rule(
        "HIST-6", "a run that waits ends with the session that it waits in", "a session that stays"
    ),
    "store": Rule("SEND-3", "what can't be recorded did not happen", "a store with room for it"),
    "no_agent": Rule("KEY-9", "a run needs an agent for its session", "an agent registered for it"),
    "limit": Rule(
        "LOOP-5",
        "a run does not start in a causal chain that has used up what it may",
        "a higher limit in session.agentToAgent.limits, or 0 for none",
    ),
}

COMPACTIONS: Final[Mapping[str, Rule]] = {
    "full": Rule(
        "CTX-5",
        "older turns are summarised before a run that has more tokens than compaction.reserveTokens leaves",
        "a model with a larger window, or agents.defaults.compaction.mode off",
    ),
    "asked_for": Rule("CTX-6", "sessions.compact and an owner's /compact have older turns summarised", ""),
}

SPENT: Final = Rule(
    "LIMIT-1",
    "no run begins a chain where a budget is used up",
    "a higher limit in that budget, or less used within its hour or day",
)
"""The rule of the code `limit` where the limit is one of a budget."""

WITHHELD: Final = Rule(
    "INB-2",
    "an answer that is exactly REPLY_SKIP or ANNOUNCE_SKIP goes to nobody, as in a loop or an announce",
    "any other text; NO_REPLY keeps silent on purpose",
)

Cut = Literal["interrupted", "late", "aborted", "collected"]
"""What else can become of an attempt."""

CUTS: Final[Mapping[Cut, Rule]] = {
    "interrupted": Rule(
        "GATE-3",
        "an attempt that a stop or a crash cuts off is tried again",
        "a stop that waits for its runs",
    ),
    "late": Rule(
        "LOOP-7",
        "an attempt that was closed answers nobody: its answer is kept, and used nowhere",
        "an answer before its time was over, or before somebody aborted it",
    ),
    "aborted": Rule("GATE-5", "an abort ends a run and keeps the text so far", "no abort"),
    "collected": Rule(
        "QUEUE-2",
        "messages that came while the session was at work are answered by one run, the last one's",
        "no other message behind it, or another queue mode",
    ),
}

Undelivered = Literal["retrying", "failed", "unknown", "denied", "withheld"]
"""How an attempt to deliver can end, if not with a receipt."""

UNDELIVERED: Final[Mapping[Undelivered, Rule]] = {
    "retrying": Rule(
        "ANN-3",
        "a channel that says it can be tried again is, after a pause that grows or that it asks for",
        "a channel that takes it at once",
    ),
    "failed": Rule(
        "ANN-3",
        "a text is given up when its channel refuses it for good or has not taken it in time, or when nobody delivers for it",
        "a channel that takes it; `intersession deliveries retry ID` tries once more",
    ),
    "unknown": Rule(
        "ANN-3",
        "a channel that can't take a text twice is not called again when it is in doubt whether it has it",
        "a channel that takes an idempotency key; `intersession deliveries retry ID` tries once more",
    ),
    "denied": Rule(
        "ANN-4", "the send policy is asked again at every delivery", "a policy that allows it by then"
    ),
    "withheld": Rule(
        "FORK-5",
        "the channels of a fork are sealed, so that nobody is told what happened in a copy",
        "a fork whose `--deliver` names the channel",
    ),
}

Waiting = Literal[
    "waits_in_queue",
    "waits_for_agent",
    "waits_for_channel",
    "waits_for_earlier",
    "waits_for_release",
    "waits_for_approval",
    "under_way",
    "frozen",
]
"""Why something has not happened yet."""

WAITING: Final[Mapping[Waiting, Rule]] = {
    "waits_in_queue": Rule(
        "SEND-10",
        "a session runs one run at a time, in the order of their arrival",
        "a session with nothing to do",
    ),
    "waits_for_agent": Rule(
        "KEY-9",
        "a run whose agent is not registered in the process at work is parked; so is one that nobody is at work on",
        "a host that runs, with an agent registered for this session",
    ),
    "waits_for_channel": Rule(
        "ANN-3",
        "a text waits for a channel that nobody has registered, at most deliveries.maxAgeSeconds",
        "a host that runs, with its channel registered",
    ),
    "waits_for_earlier": Rule(
        "ANN-5",
        "texts to one chat go out one after the other: this one waits until an earlier one is taken, given up or too old",
        "that one taken, or given up: `intersession deliveries` shows both",
    ),
    "waits_for_approval": Rule(
        "ASK-1",
        "a call that tools.ask names waits until a person releases it",
        "`intersession release ID`, with other arguments, or refused",
    ),
    "waits_for_release": Rule(
        "LIVE-1",
        "what is held waits until somebody releases it, however long that takes",
        "`intersession release ID`, with another text, or without one",
    ),
    "under_way": Rule(
        "GATE-3",
        "what was begun has no end yet; what a crash cut off goes on at the next start",
        "time, or a start where no process is at work on the log",
    ),
    "frozen": Rule(
        "FORK-6",
        "in a fork only the run goes on that was forked",
        "a fork of this one: `intersession fork ID --at PLACE`",
    ),
}
