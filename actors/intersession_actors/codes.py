"""The closed list of codes a refusal can carry; `docs/errors.md` says what each means and what to do."""

from typing import Final, Literal, get_args

RefusalCode = Literal[
    "invalid_request",
    "too_large",
    "invalid_key",
    "not_visible",
    "forbidden",
    "self_send",
    "cycle",
    "limit",
    "policy_denied",
    "ambiguous_label",
    "idempotency_conflict",
    "unknown_run",
    "unknown_agent",
    "old_generation",
    "main_session",
    "agent_not_allowed",
    "subagent_spawn",
    "spawn_limit",
    "sandbox_inherit",
    "sandbox_required",
    "invalid_model",
    "invalid_thinking",
    "no_threads",
    "not_supported",
    "invalid_name",
    "duplicate_name",
    "invalid_base64",
    "file_count_exceeded",
    "file_bytes_exceeded",
    "total_bytes_exceeded",
    "unsafe_path",
    "import_failed",
    "busy",
    "unavailable",
    "internal",
]
"""Why a call was refused."""

RefusalStatus = Literal["error", "forbidden"]
"""`forbidden` is a closed door that a setting could open; everything else is `error`."""

REFUSAL_CODES: Final[tuple[RefusalCode, ...]] = get_args(RefusalCode)

_FORBIDDEN: Final[frozenset[RefusalCode]] = frozenset(
    {
        "forbidden",
        "agent_not_allowed",
        "subagent_spawn",
        "spawn_limit",
        "sandbox_inherit",
        "sandbox_required",
    }
)


def status_of(code: RefusalCode) -> RefusalStatus:
    """Return the status that a refusal with this code has."""
    return "forbidden" if code in _FORBIDDEN else "error"
