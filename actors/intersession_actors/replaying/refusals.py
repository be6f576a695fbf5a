"""What was refused: steps of flows that sessions did not take, shown by what was decided after; and calls that doors did not take."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from intersession_actors.errors import REFUSAL_CODES
from intersession_actors.replaying.recording import Recording
from intersession_actors.tools import TOOLS
from intersession_events import facts
from intersession_events.log import Recorded

REFUSED: Final = {"requester_gone", "target_gone", "policy_denied", "turn_failed"}
"""Why a loop ends whose next step a session does not take."""


class Refusals:
    """Which flows have been refused a step since their last event: they decide again."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._came: set[tuple[str, int]] = set()

    def take(self, stream: str) -> None:
        """Note that a session refused the step of a flow."""
        self._came.add((stream, self._recording.version(stream)))

    def came(self, stream: str) -> bool:
        """Whether a flow was refused the step that it decided on last."""
        return (stream, self._recording.version(stream)) in self._came

    def come_before(self, stream: str, held: facts.ExchangeHeld) -> bool:
        """Whether a hold was decided only after a session had refused the next turn, and none has yet."""
        return held.next_end in REFUSED and not self.came(stream)

    def comes(self, stream: str, ahead: Sequence[Recorded]) -> bool:
        """Whether the session of a child is still to refuse the announce, as what is decided then shows."""
        match [item.event for item in ahead[:2]]:
            case [facts.ChildEnded(status="ok"), facts.AnnounceDecided(why="child_failed")]:
                return not self.came(stream)
            case _:
                return False


@facts.ready
class _Answer(msgspec.Struct):
    """What is looked at of a tool's answer."""

    status: str | None = None
    code: str | None = None


def calls_refused(events: Iterable[Recorded]) -> tuple[str, ...]:
    """Say in words how often doors and guards refused what was asked of them, as far as it is on record; none if never.

    A refusal begins nothing that could be decided again: a rule that is laxer today would not be noticed by it.
    """
    refused: Counter[str] = Counter()
    for recorded in events:
        match recorded.event:
            case facts.MessageRecorded(message=message) if message.role == "toolResult":
                if (code := _refused(message)) is not None:
                    refused[code] += 1
            case facts.SendRefused(code=code) as receipt if not _is_of_tool_call(recorded, receipt):
                refused[code] += 1
            case facts.AccessRecorded(denied=denied) as receipt if not _is_of_tool_call(recorded, receipt):
                refused.update(code for _, code in denied)
            case _:
                pass
    if not refused:
        return ()
    codes = ", ".join(f"{code} {times}" for code, times in sorted(refused.items()))
    return (f"refusals, which are taken as they were ({codes}): {refused.total()}",)


def _is_of_tool_call(recorded: Recorded, receipt: facts.AccessEvent) -> bool:
    """Whether a receipt is of a tool's call in a run, whose answer says the same; what is asked by a credential is in no transcript."""
    return recorded.correlation is not None and receipt.credential is None and receipt.tool in TOOLS


def _refused(message: facts.Message) -> str | None:
    if message.tool_name not in TOOLS:
        return None
    try:
        answer = msgspec.json.decode(facts.text_of(message), type=_Answer)
    except (msgspec.MsgspecError, RecursionError):
        return None
    is_refusal = answer.status in {"error", "forbidden"} and answer.code in REFUSAL_CODES
    return answer.code if is_refusal else None
