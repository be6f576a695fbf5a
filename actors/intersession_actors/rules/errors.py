"""The errors of the session system, as callers see them.

* IntersessionError (intersession_events)
  - ConfigError
  - UnknownAgent
  - CalledOnLoop
  - ToolRefused
    + LimitReached

Errors of one part only live beside it, below the same base.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, get_args

import msgspec

from intersession_events.basics.errors import CorruptEvent, IntersessionError, LogTooNew, UnknownTopic

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
    "not_approved",
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
    "not_started",
    "export_failed",
    "import_failed",
    "run_over",
    "busy",
    "unavailable",
    "unreadable",
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
        "not_approved",
    }
)


def status_of(code: RefusalCode) -> RefusalStatus:
    """Return the status of a refusal with this code."""
    return "forbidden" if code in _FORBIDDEN else "error"


class Question(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A question to a door, as its rules see it. It holds no text of a person or an agent."""


class Known(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A rule's inputs beside the question. Each field's default is its usual value."""


class Judgement(NamedTuple):
    """The question to a door, and its rule's inputs."""

    asked: Question
    known: Known


class Denial(NamedTuple):
    """Why a door refuses, and the settings behind that."""

    code: RefusalCode
    settings: tuple[str, ...] = ()


class ConfigProblem(NamedTuple):
    """A problem of a configuration: its place, and what to do. `path` is "" for the whole file."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}" if self.path else self.what


class ConfigError(IntersessionError, ValueError):
    """A configuration was refused and not applied. `problems` are all that were found (CFG-1)."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)

    @property
    def path(self) -> str:
        """The place of the first problem, for example `tools.sessions.visibility`."""
        return self.problems[0].path if self.problems else ""


class UnknownAgent(IntersessionError, LookupError):
    """No agent of this id is configured or registered. `known` are the existing ones."""

    def __init__(self, agent_id: str, known: Sequence[str]) -> None:
        super().__init__(f"unknown agent {agent_id!r}; there are: {', '.join(known) or 'none'}")
        self.agent_id = agent_id
        self.known = tuple(known)


class ToolRefused(IntersessionError):
    """A tool call was refused without any effect. Doors answer with `as_result()`; it is not a bug.

    `judged` is what was asked and known, where a rule refused it that knows more than the call.
    """

    def __init__(self, code: RefusalCode, error: str, *, judged: Judgement | None = None) -> None:
        super().__init__(error)
        self.code: RefusalCode = code
        self.error = error
        self.judged = judged

    @property
    def status(self) -> RefusalStatus:
        """Whether it is an `error`, or `forbidden` by a setting."""
        return status_of(self.code)

    def as_result(self) -> dict[str, str]:
        """Return the answer that the tool gives."""
        return {"status": self.status, "code": self.code, "error": self.error}


UNREADABLE: Final = (CorruptEvent, UnknownTopic, LogTooNew)
"""What is wrong where something in the log can't be read."""


def refused_by(error: BaseException, what: str) -> ToolRefused:
    """Return the refusal of a call that failed with an error; `what` is the message for the caller.

    It is `unreadable` where something in the log was changed, or a newer version wrote it, else `internal`.
    """
    if not isinstance(error, UNREADABLE):
        return ToolRefused("internal", what)
    advice = (
        "what does not need it goes on, `intersession verify` tells the operator what is wrong with the log"
    )
    return ToolRefused("unreadable", f"{what}; {advice}")


class LimitReached(ToolRefused):
    """A guard over the causal chain stopped the call (LOOP-5).

    `limit` names the setting, `value` is what was used of the `allowed`.
    """

    def __init__(
        self, error: str, *, limit: str, value: int, allowed: int, judged: Judgement | None = None
    ) -> None:
        super().__init__("limit", error, judged=judged)
        self.limit = limit
        self.value = value
        self.allowed = allowed


class CalledOnLoop(IntersessionError, RuntimeError):
    """A blocking call was made in a coroutine: it would block the event loop, and with it what it waits for.

    `call` is the one that was made, `instead` what to write in its place. Nothing was done.
    """

    def __init__(self, call: str, instead: str) -> None:
        super().__init__(f"{call} would block the event loop that it is called on; write {instead}")
        self.call = call
        self.instead = instead


def not_on_a_loop(call: str, instead: str) -> None:
    """Refuse a blocking call in a coroutine.

    Raises:
        CalledOnLoop: it is.
    """
    if is_on_a_loop():
        raise CalledOnLoop(call, instead)


def is_on_a_loop() -> bool:
    """Return whether the caller is a coroutine, or is called by one."""
    import asyncio  # noqa: PLC0415 - what reads a log asks for no loop

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
