"""The one table of limits on input from outside, and what happens beyond each. For every door and seam.

`docs/reference/limits.md` shows the table, and a test compares the two.
"""

from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from intersession_events.basics.keys.words import MAX_KEY_CHARACTERS
from intersession_events.basics.plain_json import MOST_LEVELS

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

_INVALID: Final = "refused: invalid_request"
_CUT: Final = "cut, with a marker"


class Limit(NamedTuple):
    """A row: at most `most` of `what`, counted in `unit`; `over` is what happens beyond it."""

    most: int
    unit: Unit
    over: Over
    what: str


# --- what callers give: refused before anything is recorded

ARGUMENTS: Final = Limit(
    64 * 1024 * 1024, "characters", "refused: too_large", "All texts of one call together"
)
VALUES: Final = Limit(100_000, "values", "refused: too_large", "Values in the arguments of one call")
DEPTH: Final = Limit(
    MOST_LEVELS, "levels", _INVALID, "Lists and objects inside each other, in the arguments of a call"
)
MESSAGE: Final = Limit(
    1024 * 1024,
    "characters",
    _INVALID,
    "A text for an agent or a person: `message`, `task`, `text`, `extraSystemPrompt`",
)
KEY: Final = Limit(
    MAX_KEY_CHARACTERS, "characters", "refused: invalid_key", "A session key or session id (KEY-6)"
)
RUN: Final = Limit(512, "characters", "refused: unknown_run", "`runId`")
IDENTITY: Final = Limit(
    512,
    "characters",
    _INVALID,
    "Any other id or address: `agentId`, `before`, `idempotencyKey`; `channel`, `chat_id`, `sender`, "
    "`account`, `thread`, `message_id` of a person's message; `to`, `accountId`, `threadId` of methods",
)
LABEL: Final = Limit(256, "characters", _INVALID, "`label` of the session tools")
GATEWAY_LABEL: Final = Limit(64, "characters", _INVALID, "`label` of methods, as in the original")
NAME: Final = Limit(
    256,
    "characters",
    _INVALID,
    "`displayName`, `model`, `thinking`, `verboseLevel`, who aborts (`by`), the name of a caller",
)
SEARCH: Final = Limit(512, "characters", _INVALID, "`search` of a list; `query` and `words` of a search")
CURSOR: Final = Limit(4096, "characters", _INVALID, "`cursor` of a list or a search")
PLACE: Final = Limit(128, "characters", _INVALID, "`asOf` as a text")
CHOICES: Final = Limit(64, "values", _INVALID, "`kinds` of a list")
PREVIEWS: Final = Limit(
    1000, "values", _INVALID, "`keys` of `sessions.preview`; the first 64 are shown, and the answer says so"
)
EDITS: Final = Limit(64, "values", _INVALID, "`edits` and `agents` of a fork")
SCRIPT: Final = Limit(1000, "values", _INVALID, "Lines of a `script` that answers in a fork")
MOUNT: Final = Limit(1024, "characters", _INVALID, "`attachAs.mountPath`")
FILE_NAME: Final = Limit(
    255,
    "bytes",
    "refused: invalid_name",
    "The name of an attachment; their number and size are settings (ATT-1)",
)
PATH: Final = Limit(4096, "characters", _INVALID, "`directory` of an import")
WAIT: Final = Limit(
    86_400, "seconds", _INVALID, "How long a call waits: `timeoutSeconds`, `timeoutMs`, `wait`"
)
RUN_TIME: Final = Limit(
    31_536_000,
    "seconds",
    _INVALID,
    "How long a run is given: `runTimeoutSeconds`, `timeout`, `timeoutMs` of `chat.send`",
)
TIMES: Final = Limit(10_000, "values", "refused: usage", "`--times` of `fork`")
PARALLEL: Final = Limit(32, "values", "refused: usage", "`--parallel` of `fork`: each is a system of its own")
LISTED: Final = Limit(100_000, "values", "refused: usage", "`--limit` of lists over the whole log")
CHAT_NAME: Final = Limit(256, "characters", _CUT, "The name of a chat or a person, as a channel tells it")

# --- what is recorded of a call

FILTERS: Final = Limit(4096, "bytes", "left out, with its size", "The arguments that an access receipt keeps")
DENIED: Final = Limit(512, "characters", _CUT, "A refused target in an access receipt")

FILE: Final = Limit(
    8 * 1024 * 1024,
    "bytes",
    "refused: too_large",
    "A file that `bundles.make` or `exports.make` hands out",
)

# --- what agents and models give: the run goes on wherever it can

REPLY: Final = Limit(
    64 * 1024 * 1024,
    "bytes",
    "the run fails: reply_too_large",
    "A reply, or a message that comes with it: `runs.replyMaxBytes`, at most this",
)
REPLY_MESSAGES: Final = Limit(
    1000, "messages", "the run fails: bad_reply", "Messages that come with one reply"
)
REPLY_DEPTH: Final = Limit(
    MOST_LEVELS,
    "levels",
    "the run fails: bad_reply",
    "Lists and objects inside each other, in a message that comes with a reply",
)
WORD: Final = Limit(
    256, "characters", _CUT, "The name of a tool or a model, the id of a tool's call, a stop reason"
)
TOOL_ARGUMENTS: Final = Limit(
    1024 * 1024, "characters", "left out, with its size", "The arguments of a tool's call on record"
)
TOOL_DEPTH: Final = Limit(
    MOST_LEVELS,
    "levels",
    "kept as a text",
    "Lists and objects inside each other, in the arguments of a tool's call on record",
)
TOOL_RESULT: Final = Limit(
    1024 * 1024, "characters", _CUT, "A tool's result on record, and what a model said beside a call"
)
USAGE: Final = Limit(
    10**12,
    "tokens or micro-units",
    "taken as the limit, and noted",
    "Each number of a run's usage; one below 0 counts as 0 and is noted",
)
ERROR: Final = Limit(2000, "characters", _CUT, "What an agent, a channel or the file system failed with")

# --- what channels give

RECEIPT: Final = Limit(64 * 1024, "bytes", "left out, with its size", "A channel's receipt")
THREAD: Final = Limit(512, "characters", "refused: no_threads", "The id of a thread that a channel opened")

# --- settings

SETTING: Final = Limit(65_536, "characters", "configuration refused", "A text in the configuration")
CREDENTIAL: Final = Limit(
    128, "characters", "configuration refused", "The name of a credential, of a channel"
)

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
