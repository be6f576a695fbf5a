"""Notes the payloads of one pass over a log that are encrypted, and stay so: their keys are not at hand, or were destroyed."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, Literal

from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.facts import Event, standing
from intersession_events.facts.reasons import counted
from intersession_events.log.row_state import Envelope
from intersession_events.log.sql import Row

Unseen = Literal["away", "destroyed"]
"""Why an encrypted payload can't be seen: its key is not at hand, or was destroyed for good."""

_SAID: Final[dict[Unseen, str]] = {
    "away": "their keys are not at hand. It takes the log's keys and their master key",
    "destroyed": "their keys were destroyed, to have them forgotten. No event of this log need say so",
}
UNSEEN: Final = frozenset[str](_SAID)


class EncryptedRows:
    """The encrypted rows of a log. `look` says why one can't be seen, or in words what is wrong with it."""

    def __init__(self, look: Callable[[Envelope], Unseen | str]) -> None:
        self._look = look
        self._unseen = Counter[Unseen]()

    def found(self, row: Row, envelope: Envelope) -> Event | str:
        """Return the event that is left of a row without its words, or in words what is wrong with it."""
        try:
            event = standing(row[3], bytes(envelope.data))
        except (CorruptEvent, UnknownTopic) as error:
            return str(error)
        said = self._look(envelope)
        if said not in _SAID:
            return said
        self._unseen[said] += 1
        return event

    def unproven(self) -> Iterator[str]:
        """Yield what can't be proven of them, a sentence each."""
        for why, count in sorted(self._unseen.items()):
            yield f"What {counted(count, 'encrypted payload')} say, and that nobody put others in their place: {_SAID[why]}."

    def __len__(self) -> int:
        """Return how many payloads could not be seen."""
        return self._unseen.total()
