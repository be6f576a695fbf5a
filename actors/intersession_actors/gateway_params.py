"""What each method of the gateway takes. Unknown fields are refused."""

from typing import Literal

import msgspec


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Base of all parameters."""


class NoParams(Params, frozen=True, kw_only=True):
    """`health`, `status`."""


class AgentsListParams(Params, frozen=True, kw_only=True):
    """`agents.list`."""


class AgentParams(Params, frozen=True, kw_only=True):
    """`agent`: run an agent on a message. `timeout` in seconds."""

    message: str
    idempotency_key: str
    session_key: str | None = None
    agent_id: str | None = None
    deliver: bool = False
    timeout: int | None = None


class ChatSendParams(Params, frozen=True, kw_only=True):
    """`chat.send`."""

    session_key: str
    message: str
    idempotency_key: str
    deliver: bool = False
    timeout_ms: int | None = None


class WaitParams(Params, frozen=True, kw_only=True):
    """`agent.wait`."""

    run_id: str
    timeout_ms: int = 30_000


class ChatAbortParams(Params, frozen=True, kw_only=True):
    """`chat.abort`: a run, or all that runs or waits in the session."""

    session_key: str
    run_id: str | None = None


class ChatHistoryParams(Params, frozen=True, kw_only=True):
    """`chat.history`: uncut."""

    session_key: str
    limit: int | None = None


class ChatInjectParams(Params, frozen=True, kw_only=True):
    """`chat.inject`: an assistant message that no run made."""

    session_key: str
    message: str
    label: str | None = None


class SessionsListParams(Params, frozen=True, kw_only=True):
    """`sessions.list`."""

    limit: float | None = None
    active_minutes: float | None = None
    label: str | None = None
    agent_id: str | None = None
    search: str | None = None


class ResolveParams(Params, frozen=True, kw_only=True):
    """`sessions.resolve`: exactly one of the three."""

    key: str | None = None
    session_id: str | None = None
    label: str | None = None
    agent_id: str | None = None


class PatchParams(Params, frozen=True, kw_only=True):
    """`sessions.patch`: null clears."""

    key: str
    send_policy: str | None = None
    label: str | None = None
    model: str | None = None
    thinking_level: str | None = None
    verbose_level: str | None = None
    display_name: str | None = None


class KeyParams(Params, frozen=True, kw_only=True):
    """`sessions.delete`."""

    key: str


class ResetParams(Params, frozen=True, kw_only=True):
    """`sessions.reset`."""

    key: str
    reason: Literal["new", "reset"] = "reset"


class SendParams(Params, frozen=True, kw_only=True):
    """`send`: a text to a channel, in the name of a session."""

    channel: str
    to: str
    message: str
    idempotency_key: str
    session_key: str | None = None
    account_id: str | None = None
    thread_id: str | None = None
