"""The one table of limits: how much of everything is taken from outside, and what becomes of more. For every door and seam.

`docs/reference/limits.md` shows the table, and a test compares the two.
"""

from typing import Annotated, Final, Literal

import msgspec

from intersession_events.key_words import MAX_KEY_CHARACTERS
from intersession_events.plain_json import MOST_LEVELS

Unit = Literal["characters", "bytes", "levels", "values", "messages", "seconds", "tokens or micro-units"]
Over = Literal[
    "refused: too_large",
    "refused: invalid_request",
    "refused: invalid_key",
    "refused: invalid_name",
    "refused: unknown_run",
    "refused: no_threads",
    "cut, with a marker",
    "left out, with its size",
    "taken as the limit, and noted",
    "the run fails: reply_too_large",
    "the run fails: bad_reply",
    "kept as a text",
    "configuration refused",
    "refused: usage",
]


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A row: `most` of `what` is taken, counted in `unit`; `over` is what becomes of more."""

    what: str
    most: int
    unit: Unit
    over: Over


# --- what callers give: refused before anything is recorded

ARGUMENTS: Final = Limit(
    what="All texts of one call together", most=64 * 1024 * 1024, unit="characters", over="refused: too_large"
)
VALUES: Final = Limit(
    what="Values in the arguments of one call", most=100_000, unit="values", over="refused: too_large"
)
DEPTH: Final = Limit(
    what="Lists and objects inside each other, in the arguments of a call",
    most=MOST_LEVELS,
    unit="levels",
    over="refused: invalid_request",
)
MESSAGE: Final = Limit(
    what="A text for an agent or a person: `message`, `task`, `text`, `extraSystemPrompt`",
    most=1024 * 1024,
    unit="characters",
    over="refused: invalid_request",
)
KEY: Final = Limit(
    what="A session key or session id (KEY-6)",
    most=MAX_KEY_CHARACTERS,
    unit="characters",
    over="refused: invalid_key",
)
RUN: Final = Limit(what="`runId`", most=512, unit="characters", over="refused: unknown_run")
IDENTITY: Final = Limit(
    what="Any other id or address: `agentId`, `before`, `idempotencyKey`; `channel`, `chat_id`, `sender`, "
    "`account`, `thread`, `message_id` of a person's message; `to`, `accountId`, `threadId` of the gateway's methods",
    most=512,
    unit="characters",
    over="refused: invalid_request",
)
LABEL: Final = Limit(
    what="`label` of the session tools", most=256, unit="characters", over="refused: invalid_request"
)
GATEWAY_LABEL: Final = Limit(
    what="`label` of the gateway's methods, as in the original",
    most=64,
    unit="characters",
    over="refused: invalid_request",
)
NAME: Final = Limit(
    what="`displayName`, `model`, `thinking`, `verboseLevel`, who aborts (`by`), the name of a caller",
    most=256,
    unit="characters",
    over="refused: invalid_request",
)
SEARCH: Final = Limit(what="`search` of a list", most=512, unit="characters", over="refused: invalid_request")
CURSOR: Final = Limit(
    what="`cursor` of a list", most=4096, unit="characters", over="refused: invalid_request"
)
PLACE: Final = Limit(what="`asOf` as a text", most=128, unit="characters", over="refused: invalid_request")
CHOICES: Final = Limit(what="`kinds` of a list", most=64, unit="values", over="refused: invalid_request")
PREVIEWS: Final = Limit(
    what="`keys` of `sessions.preview`; the first 64 are shown",
    most=1000,
    unit="values",
    over="refused: invalid_request",
)
MOUNT: Final = Limit(
    what="`attachAs.mountPath`", most=1024, unit="characters", over="refused: invalid_request"
)
FILE_NAME: Final = Limit(
    what="The name of an attachment; their number and size are settings (ATT-1)",
    most=255,
    unit="bytes",
    over="refused: invalid_name",
)
PATH: Final = Limit(
    what="`directory` of an import", most=4096, unit="characters", over="refused: invalid_request"
)
WAIT: Final = Limit(
    what="How long a call waits: `timeoutSeconds`, `timeoutMs`, `wait`",
    most=86_400,
    unit="seconds",
    over="refused: invalid_request",
)
RUN_TIME: Final = Limit(
    what="How long a run is given: `runTimeoutSeconds`, `timeout`, `timeoutMs` of `chat.send`",
    most=31_536_000,
    unit="seconds",
    over="refused: invalid_request",
)
LISTED: Final = Limit(
    what="`--limit` of `runs` and `audit access`", most=100_000, unit="values", over="refused: usage"
)
CHAT_NAME: Final = Limit(
    what="The name of a chat or a person, as a channel tells it",
    most=256,
    unit="characters",
    over="cut, with a marker",
)

# --- what is recorded of a call

FILTERS: Final = Limit(
    what="The arguments that an access receipt keeps", most=4096, unit="bytes", over="left out, with its size"
)
DENIED: Final = Limit(
    what="A refused target in an access receipt", most=512, unit="characters", over="cut, with a marker"
)

# --- what agents and models give: the run goes on wherever it can

REPLY: Final = Limit(
    what="A reply, or a message that comes with it: `runs.replyMaxBytes`, at most this",
    most=64 * 1024 * 1024,
    unit="bytes",
    over="the run fails: reply_too_large",
)
REPLY_MESSAGES: Final = Limit(
    what="Messages that come with one reply", most=1000, unit="messages", over="the run fails: bad_reply"
)
REPLY_DEPTH: Final = Limit(
    what="Lists and objects inside each other, in a message that comes with a reply",
    most=MOST_LEVELS,
    unit="levels",
    over="the run fails: bad_reply",
)
WORD: Final = Limit(
    what="The name of a tool or a model, the id of a tool's call, a stop reason",
    most=256,
    unit="characters",
    over="cut, with a marker",
)
TOOL_ARGUMENTS: Final = Limit(
    what="The arguments of a tool's call on record",
    most=1024 * 1024,
    unit="characters",
    over="left out, with its size",
)
TOOL_DEPTH: Final = Limit(
    what="Lists and objects inside each other, in the arguments of a tool's call on record",
    most=MOST_LEVELS,
    unit="levels",
    over="kept as a text",
)
TOOL_RESULT: Final = Limit(
    what="A tool's result on record, and what a model said beside a call",
    most=1024 * 1024,
    unit="characters",
    over="cut, with a marker",
)
USAGE: Final = Limit(
    what="Each number of a run's usage; one below 0 counts as 0 and is noted",
    most=10**12,
    unit="tokens or micro-units",
    over="taken as the limit, and noted",
)
ERROR: Final = Limit(
    what="What an agent, a channel or the file system failed with",
    most=2000,
    unit="characters",
    over="cut, with a marker",
)

# --- what channels give

RECEIPT: Final = Limit(
    what="A channel's receipt", most=64 * 1024, unit="bytes", over="left out, with its size"
)
THREAD: Final = Limit(
    what="The id of a thread that a channel opened", most=512, unit="characters", over="refused: no_threads"
)

# --- settings

SETTING: Final = Limit(
    what="A text in the configuration", most=65_536, unit="characters", over="configuration refused"
)
CREDENTIAL: Final = Limit(
    what="The name of a credential, of a channel", most=128, unit="characters", over="configuration refused"
)

LIMITS: Final[tuple[Limit, ...]] = (
    ARGUMENTS,
    VALUES,
    DEPTH,
    MESSAGE,
    KEY,
    RUN,
    IDENTITY,
    LABEL,
    GATEWAY_LABEL,
    NAME,
    SEARCH,
    CURSOR,
    PLACE,
    CHOICES,
    PREVIEWS,
    MOUNT,
    FILE_NAME,
    PATH,
    WAIT,
    RUN_TIME,
    LISTED,
    CHAT_NAME,
    FILTERS,
    DENIED,
    REPLY,
    REPLY_MESSAGES,
    REPLY_DEPTH,
    WORD,
    TOOL_ARGUMENTS,
    TOOL_DEPTH,
    TOOL_RESULT,
    USAGE,
    ERROR,
    RECEIPT,
    THREAD,
    SETTING,
    CREDENTIAL,
)
"""All rows, in the order of the page."""

# --- kinds of text, as the structs of arguments have them; schemas say the same

_NO_CONTROLS: Final = "^(?![\\s\\S]*[\\u0000-\\u001f\\u007f-\\u009f])"
"""Whatever has no control character in it, in the words that JSON schemas and Python share."""

MessageText = Annotated[str, msgspec.Meta(max_length=MESSAGE.most)]
KeyText = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": KEY.most})]
"""Not checked where arguments are read: what is too long for a key is `invalid_key`, and whoever parses it says so."""
RunText = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": RUN.most})]
"""Not checked where arguments are read: there is no run of a longer id."""
Identity = Annotated[str, msgspec.Meta(max_length=IDENTITY.most, pattern=_NO_CONTROLS)]
AgentId = Annotated[str, msgspec.Meta(max_length=IDENTITY.most)]
"""It is trimmed before it is looked at, and then says itself what it may hold."""
Label = Annotated[str, msgspec.Meta(max_length=LABEL.most, pattern=_NO_CONTROLS)]
Name = Annotated[str, msgspec.Meta(max_length=NAME.most, pattern=_NO_CONTROLS)]
GatewayLabel = Annotated[str, msgspec.Meta(min_length=1, max_length=GATEWAY_LABEL.most, pattern=_NO_CONTROLS)]
IdempotencyKey = Annotated[str, msgspec.Meta(max_length=IDENTITY.most)]
SearchText = Annotated[str, msgspec.Meta(max_length=SEARCH.most)]
CursorText = Annotated[str, msgspec.Meta(max_length=CURSOR.most)]
PlaceText = Annotated[str, msgspec.Meta(max_length=PLACE.most)]
MessageId = Annotated[str, msgspec.Meta(max_length=IDENTITY.most)]
