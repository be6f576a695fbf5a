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
    """Say in words how often doors refused what agents asked of the session tools, and a guard what others asked; none if never.

    A refusal begins nothing that could be decided again: a rule that is laxer today would not be noticed by it.
    """
    answers: Counter[str] = Counter()
    receipts: Counter[str] = Counter()
    for recorded in events:
        match recorded.event:
            case facts.MessageRecorded(message=message) if message.role == "toolResult":
                if (code := _refused(message)) is not None:
                    answers[code] += 1
            case facts.SendRefused(code=code):
                receipts[code] += 1
            case _:
                pass
    # What a guard refuses an agent stands in its tool's answer, and in a receipt as well.
    refused = answers | receipts
    if not refused:
        return ()
    codes = ", ".join(f"{code} {times}" for code, times in sorted(refused.items()))
    return (f"refusals, which are taken as they were ({codes}): {refused.total()}",)


def _refused(message: facts.Message) -> str | None:
    if message.tool_name not in TOOLS:
        return None
    try:
        answer = msgspec.json.decode(facts.text_of(message), type=_Answer)
    except (msgspec.MsgspecError, RecursionError):
        return None
    is_refusal = answer.status in {"error", "forbidden"} and answer.code in REFUSAL_CODES
    return answer.code if is_refusal else None
