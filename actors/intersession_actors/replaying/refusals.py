"""What was refused: steps of flows that sessions did not take, shown by what was decided after."""

from collections.abc import Sequence
from typing import Final

from intersession_actors.replaying.recording import Recording
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
