"""The types of answers, for hosts' type checkers. At run time an answer is a plain dict.

A refusal is an answer (`status` "error" or "forbidden", with `code` and `error`). So what a call has only if it went
well may be missing: look at `status` first, or read a field with `get`.
"""

from typing import Literal, NotRequired, TypedDict

from intersession_events.basics.plain_json import JsonObject, JsonValue


class Refused(TypedDict, total=False):
    """The fields of a refused answer: `code` from the closed list, `error` says what to do."""

    code: str
    error: str


class RunAnswer(Refused):
    """How a run ended, or that it has not yet (`agent.wait`, GATE-3). Times are in ms since 1970.

    `ok`, `error` and `aborted` are ends; `timeout` with a `runState` means that the wait was over before the run.
    `collectedInto` is the run that answers its message, and whose end this is (QUEUE-2).
    """

    status: Literal["ok", "error", "timeout", "aborted", "forbidden"]
    runId: NotRequired[str]
    sessionKey: NotRequired[str]
    reply: NotRequired[str]
    startedAt: NotRequired[int]
    endedAt: NotRequired[int]
    runState: NotRequired[str]
    held: NotRequired[str]
    collectedInto: NotRequired[str]


class StreamAnswer(Refused):
    """A part of a run's answer while it is said (STREAM-2).

    `delta`: `text` is all that the attempt has said, `delta` what came to it. `restarted`: the attempt was cut off, and what it had
    said counts no more. `final`, `aborted` and `error` are the last part, which is as `RunAnswer` has it.
    """

    state: Literal["delta", "restarted", "final", "aborted", "error"]
    runId: str
    attempt: NotRequired[int]
    text: NotRequired[str]
    delta: NotRequired[str]
    status: NotRequired[Literal["ok", "error", "timeout", "aborted"]]
    reply: NotRequired[str]
    startedAt: NotRequired[int]
    endedAt: NotRequired[int]
    runState: NotRequired[str]
    held: NotRequired[str]
    collectedInto: NotRequired[str]


class InboundAnswer(Refused):
    """The outcome of a person's message (INB-1): `accepted`, or with `wait` a `RunAnswer`, or a refusal.

    `messageId` is there in place of `runId` where no run was started (INB-2, INB-3).
    """

    status: Literal["accepted", "ok", "error", "timeout", "aborted", "forbidden"]
    runId: NotRequired[str]
    messageId: NotRequired[str]
    sessionKey: NotRequired[str]
    reply: NotRequired[str]
    startedAt: NotRequired[int]
    endedAt: NotRequired[int]
    runState: NotRequired[str]
    collectedInto: NotRequired[str]


class AcceptedAnswer(Refused):
    """The immediate answer of `agent`, `chat.send` and `runs.retry` (GATE-1). `agent.wait` has the end."""

    status: str
    runId: NotRequired[str]
    sessionKey: NotRequired[str]
    acceptedAt: NotRequired[int]
    retryOf: NotRequired[str]


class DeliveryAnswer(TypedDict):
    """Whether an announce may go outside (SEND-8): `pending` if there is a route, never a promise."""

    status: Literal["pending", "none"]
    mode: NotRequired[Literal["announce"]]


class SendAnswer(Refused):
    """The answer of `sessions_send` (SEND-4 to SEND-7)."""

    status: Literal["accepted", "ok", "timeout", "error", "forbidden"]
    runId: NotRequired[str]
    sessionKey: NotRequired[str]
    reply: NotRequired[str]
    noReply: NotRequired[bool]
    delivered: NotRequired[bool]
    delivery: NotRequired[DeliveryAnswer]
    held: NotRequired[bool]
    edited: NotRequired[bool]


class HoldAnswer(Refused):
    """The effect of a hold (LIVE-1). `again`: it was held already. `exchanges` are those that a held session has stopped or will."""

    status: Literal["ok", "error", "forbidden"]
    runId: NotRequired[str]
    exchangeId: NotRequired[str]
    sessionKey: NotRequired[str]
    before: NotRequired[str]
    again: NotRequired[bool]
    held: NotRequired[dict[str, str | int]]
    exchanges: NotRequired[list[str]]


class ReleasedCallAnswer(Refused):
    """The effect of a release of a tool call (ASK-2). `again`: it was released so before."""

    status: Literal["released", "error", "forbidden"]
    holdId: NotRequired[str]
    sessionKey: NotRequired[str]
    runId: NotRequired[str]
    tool: NotRequired[str]
    action: NotRequired[str]
    again: NotRequired[bool]


class ReleaseAnswer(Refused):
    """The effect of a release (LIVE-1): `withdrawn` is the end of a hold that had not stopped anything yet."""

    status: Literal["released", "withdrawn", "error", "forbidden"]
    runId: NotRequired[str]
    exchangeId: NotRequired[str]
    sessionKey: NotRequired[str]
    holdId: NotRequired[str]
    action: NotRequired[str]
    again: NotRequired[bool]
    released: NotRequired[list[str]]


class AttachedFile(TypedDict):
    """One file that a child was given (ATT-3)."""

    name: str
    bytes: int
    sha256: str


class AttachmentsAnswer(TypedDict):
    """The receipt of a child's files (ATT-3)."""

    count: int
    totalBytes: int
    files: list[AttachedFile]
    relDir: str


class SpawnAnswer(Refused):
    """The answer of `sessions_spawn`, immediate (SPAWN-6) unless it waits: then the child's `reply`, or its `output` (CHILD-1)."""

    status: Literal["accepted", "ok", "timeout", "error", "forbidden"]
    reply: NotRequired[str]
    output: NotRequired[JsonValue]
    runId: NotRequired[str]
    childSessionKey: NotRequired[str]
    mode: NotRequired[Literal["run", "session"]]
    attachments: NotRequired[AttachmentsAnswer]


class RouteAnswer(TypedDict, total=False):
    """The route of a session's texts."""

    channel: str
    to: str
    accountId: str
    threadId: str


class SessionAnswer(TypedDict):
    """A row of `sessions_list` (LIST-5). Unknown values are None; `session.dialect` may rename two fields."""

    key: str
    kind: Literal["main", "group", "cron", "hook", "node", "other"]
    channel: NotRequired[str]
    provider: NotRequired[str]
    sessionId: str
    updatedAt: int
    model: str | None
    contextTokens: int | None
    totalTokens: int | None
    thinkingLevel: str | None
    verboseLevel: str | None
    systemSent: bool
    abortedLastRun: bool
    runState: Literal["idle", "queued", "running"]
    position: int
    displayName: NotRequired[str]
    label: NotRequired[str]
    sendPolicy: NotRequired[Literal["allow", "deny"]]
    lastChannel: NotRequired[str]
    lastProvider: NotRequired[str]
    lastTo: NotRequired[str]
    deliveryContext: NotRequired[RouteAnswer]
    spawnedBy: NotRequired[str]
    transcriptPath: NotRequired[str]
    messages: NotRequired[list[JsonObject]]
    messagesDropped: NotRequired[int]
    messagesError: NotRequired[Refused]


class ListAnswer(Refused, total=False):
    """The answer of `sessions_list` (LIST-7). `status` is there for a refusal alone."""

    status: Literal["error", "forbidden"]
    count: int
    sessions: list[SessionAnswer]
    asOf: int
    nextCursor: str
    note: str
    truncated: bool
    limitApplied: int
    messageLimitApplied: int
    contentTruncated: bool
    contentRedacted: bool


class HistoryAnswer(Refused, total=False):
    """The answer of `sessions_history` (HIST-4). Messages are as they were stored: unknown fields of an import too.

    `status` is there for a refusal alone.
    """

    status: Literal["error", "forbidden"]
    sessionKey: str
    messages: list[JsonObject]
    truncated: bool
    droppedMessages: int
    contentTruncated: bool
    contentRedacted: bool
    bytes: int
    position: int
    before: str
    limitApplied: int


class FoundAnswer(TypedDict):
    """A message with all the words (FIND-1). `timestamp` is in ms, `runId` its run, or the run that answers it."""

    sessionKey: str
    position: int
    runId: str | None
    snippet: str
    sessionId: str
    messageId: str
    role: str
    timestamp: int


class SearchedAnswer(Refused, total=False):
    """The answer of `sessions_search` (FIND-1), newest first. `status` is there for a refusal alone."""

    status: Literal["error", "forbidden"]
    hits: list[FoundAnswer]
    cursor: str | None
    limitApplied: int


class ChatHistoryAnswer(Refused, total=False):
    """The answer of `chat.history`: the transcript, uncut. `status` is there for a refusal alone."""

    status: Literal["error", "forbidden"]
    sessionKey: str
    sessionId: str | None
    messages: list[JsonObject]
    limitApplied: int
    thinkingLevel: str | None
    verboseLevel: str | None


class AgentAnswer(TypedDict):
    """An agent that may be started (SPAWN-2)."""

    id: str
    name: NotRequired[str]
    configured: bool


class AgentsAnswer(Refused, total=False):
    """The answer of `agents_list` (SPAWN-2). `status` is there for a refusal alone."""

    status: Literal["error", "forbidden"]
    requester: str
    allowAny: bool
    agents: list[AgentAnswer]
