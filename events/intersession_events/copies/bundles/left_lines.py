"""What checkpoints say is left of the events of a bundle without their words: so what stands in their place is proven (BUNDLE-21)."""

from collections import deque
from collections.abc import Sequence
from hashlib import sha256

from intersession_events.facts import has_words
from intersession_events.log.erasing import left_in
from intersession_events.log.sql import Row
from intersession_events.proofs.statement import Checkpoint


class LeftLines:
    """Takes the rows of a log in order. Of each stretch between two checkpoints that is in the bundle, it keeps all that can have words.

    A checkpoint says one hash over all of them, so a stretch with such an event outside of the bundle proves nothing: and to say
    what is left of that event would let its names be guessed.
    """

    def __init__(self, checkpoints: Sequence[Checkpoint]) -> None:
        self._lines = bytearray()
        self._due = deque(checkpoints)
        self._stretch = bytearray()
        self._is_whole = True

    def take(self, row: Row, *, is_inside: bool) -> None:
        """Take the next row; one outside of the bundle may lack its payload.

        Raises:
            CorruptEvent: its payload can't be read.
        """
        position, _, _, topic, state = row
        while self._due and self._due[0].position < position:
            self._close()
        if not self._due or not self._is_whole or not has_words(topic):
            return
        if not is_inside:
            self._is_whole, self._stretch = False, bytearray()
            return
        left = left_in(state, topic, where=f"position {position}")
        if left is not None:
            self._stretch += f',[{position},"{sha256(left).hexdigest()}"]'.encode()

    def ended(self) -> bytes:
        """Return the lines as JSON: a position, and the SHA-256 (hex) of what is left of its event; nothing for none."""
        while self._due:
            self._close()
        return b"[" + self._lines[1:] + b"]" if self._lines else b""

    def _close(self) -> None:
        if self._due.popleft().unsaid is not None and self._is_whole:
            self._lines += self._stretch
        self._is_whole, self._stretch = True, bytearray()
