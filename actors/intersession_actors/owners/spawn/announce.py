"""The form of a sub-agent's announce: Status, Result, Notes, stats (SPAWN-10). Pure."""

import re
from typing import Final, Literal

import msgspec

from intersession_events.facts import Usage

Status = Literal["success", "error", "timeout", "interrupted"]

# A line of a model's or an error's text that begins like one of ours is quoted, so that only ours count.
_IMITATION: Final = re.compile(
    r"(\A|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])([ \t]*(?:status|result|notes|stats)[ \t]*:)", re.IGNORECASE
)
_MICROS: Final = 1_000_000
FAILED: Final = "the sub-agent failed; the operator can see why"
"""What people are told in place of an error's text, which names hosts, files and models (INB-2)."""


class SpawnOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an ended sub-agent.

    `status` is the runtime's word for how it ended. `result` is its announce text, else its final reply, else its
    latest tool result. Times in milliseconds; what is not known is None and left out of the stats.
    """

    status: Status
    session_key: str
    session_id: str
    result: str | None = None
    notes: str | None = None
    runtime_ms: int | None = None
    usage: Usage | None = None
    transcript_path: str | None = None


def announce_text(outcome: SpawnOutcome) -> str:
    """Return the announce of an ended sub-agent. No text of a model can set its status or its stats."""
    return f"{_form(outcome, outcome.notes)}\nStats: {stats(outcome)}"


def announce_to_people(outcome: SpawnOutcome) -> str:
    """Return the announce for a chat: without the stats line, which names ids and paths, and with our own words for errors."""
    failed = outcome.status == "error" and outcome.notes is not None
    return _form(outcome, FAILED if failed else outcome.notes)


def _form(outcome: SpawnOutcome, notes: str | None) -> str:
    return "\n".join(
        (
            f"Status: {outcome.status}",
            f"Result: {_quoted(outcome.result) or '(no output)'}",
            f"Notes: {_quoted(notes) or '(none)'}",
        )
    )


def stats(outcome: SpawnOutcome) -> str:
    """Return the stats on one line: runtime, tokens, session, transcript, and the cost if it is known."""
    usage = outcome.usage
    parts = [f"runtime {_duration(outcome.runtime_ms)}"]
    if usage is None:
        parts.append("tokens unknown")
    else:
        parts.append(f"tokens in {usage.input} / out {usage.output} / total {usage.tokens}")
    parts.append(f"sessionKey {outcome.session_key}")
    parts.append(f"sessionId {outcome.session_id}")
    if outcome.transcript_path is not None:
        parts.append(f"transcript {outcome.transcript_path}")
    if usage is not None and usage.cost_micros is not None:
        parts.append(f"cost {_money(usage.cost_micros)}")
    return " • ".join(parts)


def _quoted(text: str | None) -> str:
    return "" if text is None else _IMITATION.sub(r"\1> \2", text)


def _duration(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "unknown"
    seconds = milliseconds // 1000
    if seconds < 1:
        return f"{milliseconds}ms"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)


def _money(micros: int) -> str:
    units, rest = divmod(micros, _MICROS)
    decimals = f"{rest:06d}".rstrip("0")
    return f"{units}.{decimals:0<2}"
