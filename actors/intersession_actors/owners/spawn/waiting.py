"""Waits for a spawn's child to be there, so that it can be spoken to at once (SPAWN-12). Used by the spawner."""

from intersession_actors.owners.spawn.rules import Spawn
from intersession_actors.owners.streams.outcomes import Accepted, OnAnswer, Refused
from intersession_actors.rules.errors import REFUSAL_CODES, RefusalCode
from intersession_events import facts


class Waiting:
    """Those who wait, by spawn."""

    def __init__(self) -> None:
        self._started: dict[str, list[OnAnswer]] = {}

    def hear(self, stream: str, state: Spawn, started: OnAnswer) -> None:
        """Tell somebody how a child began, now if that is known, else once it is."""
        if state.closed is not None and state.not_started:
            started(why_not_started(state.closed))
        elif state.phase == "preparing":
            waiting = self._started.setdefault(stream, [])
            if started not in waiting:  # decided twice is heard once
                waiting.append(started)
        else:
            started(Accepted(recorded=(), again=True))

    def tell(self, stream: str, outcome: Accepted | Refused) -> None:
        """Tell all who wait for a child."""
        for started in self._started.pop(stream, ()):
            started(outcome)

    def tell_all(self, outcome: Refused) -> None:
        """Tell all who wait for any child."""
        for stream in list(self._started):
            self.tell(stream, outcome)

    def forget(self, stream: str, started: OnAnswer | None) -> None:
        """Tell nobody of a spawn any more, if this one waits for it: it is told in another way."""
        if started in self._started.get(stream, ()):
            self._started.pop(stream)


def why_not_started(closed: facts.SpawnClosed) -> Refused:
    """Return what a caller is told of a child that never was."""
    codes: dict[str | None, RefusalCode] = {code: code for code in REFUSAL_CODES}
    return Refused(
        code=codes.get(closed.code, "internal"),
        error=closed.note or "the sub-agent could not be started, spawn again",
    )
