"""Takes checkpoints: reads the events behind the last one, page by page, beside the log's writer, and states the log's hashes there.

Nothing here is in the writer's way. A checkpoint is of a position that the reader has come to; the log may be further by
then, and what lies between belongs to the next one.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Final

import msgspec

from intersession_events.basics import ids
from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.facts import CheckpointTaken
from intersession_events.log.erasing import left_in
from intersession_events.log.log import Log
from intersession_events.log.recorded import ANY_VERSION, Draft, Recorded, StreamAppend
from intersession_events.log.row_state import hash_in
from intersession_events.proofs.merkle import GrowingTree, leaf_hash
from intersession_events.proofs.notes import default_origin, note_of, signed_note
from intersession_events.proofs.signatures import PrivateKey
from intersession_events.proofs.statement import (
    PUBLISHED,
    STREAM,
    TAKEN,
    Checkpoint,
    checkpoint_of,
    line_of,
    unsaid_line,
)
from intersession_events.proofs.stream_heads import StreamHeads

ERASED: Final = "erased.1"
PAGE: Final = 1000
"""Rows that are read at a time."""

_LAST: Final = "SELECT MAX(originator_version), COUNT(*) FROM stored_events WHERE originator_id=? AND topic=?"
# The plus keeps SQLite on the index by streams, which has all that the inner statement asks for.
_HEADS: Final = """
SELECT s.originator_id, s.originator_version, s.state FROM (
    SELECT originator_id AS stream, MAX(originator_version) AS version FROM stored_events
    WHERE originator_id>? AND +rowid BETWEEN 1 AND ? GROUP BY originator_id ORDER BY originator_id LIMIT ?
) AS ends JOIN stored_events AS s ON s.originator_id=stream AND s.originator_version=version ORDER BY s.originator_id
"""


class CheckpointTaker:
    """Follows a log from its last checkpoint on. It belongs to one thread.

    `fold` as long as it says that there is more, then `take`, append what it returns, and say that it was `appended`.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._heads: StreamHeads | None = None
        self.begin_again()

    def begin_again(self) -> None:
        """Read from the last checkpoint on once more, since the outcome of an append is unknown."""
        self._begun = False
        self.last: Checkpoint | None = None
        """The checkpoint before, once something was folded."""
        self.last_at = 0
        """Where the event of the checkpoint before stands; `last_time` is when it was taken, in ms."""
        self.last_time = 0
        self.taken = 0
        """How many checkpoints the log has."""
        self.position = 0
        """The event that was folded last."""
        self.fresh = 0
        """How many events there are since the checkpoint before, checkpoints and their publication aside."""
        self.has_erased = False
        """Whether one of them erases words."""
        self._rolling = sha256()
        self._unsaid = sha256()
        self._is_known = True
        """Whether it is known of each event since the checkpoint before what would be left of it without words."""
        self._tree = GrowingTree()

    @property
    def has_heads(self) -> bool:
        """Whether the heads of all streams are known, so that only moved ones are read."""
        return self._heads is not None

    def fold(self) -> bool:
        """Take the next page of events in; return whether there may be more.

        Raises:
            CorruptEvent: a row can't be read. What lies behind it can't be checkpointed.
            StoreUnavailable: the store can't be read.
        """
        if not self._begun:
            self._begin()
        rows = self._log.rows(after=self.position, limit=PAGE)
        for position, stream, version, topic, state in rows:
            hashed = hash_in(state, where=f"position {position}")
            line = line_of(position, hashed)
            self._rolling.update(line)
            self._tree.add(leaf_hash(line))
            self.position = position
            if topic not in _OWN:
                self.fresh += 1
                self.has_erased = self.has_erased or topic == ERASED
            try:
                if (left := left_in(state, topic, where=f"position {position}")) is not None:
                    self._unsaid.update(unsaid_line(position, left))
            except (CorruptEvent, UnknownTopic):
                self._is_known = (
                    False  # a later version may know: what is said of it here would be wrong there
                )
            if self._heads is not None:
                self._heads.tell(stream, version, hashed)
        return len(rows) == PAGE

    def know_heads(self, may_go_on: Callable[[], bool] = lambda: True) -> bool:
        """Read the heads of all streams as of the position, once; later events keep them current.

        False if it may not go on: it is asked between pages.

        Raises:
            CorruptEvent: a row can't be read.
            StoreUnavailable: the store can't be read.
        """
        if self._heads is not None:
            return True
        heads, after = StreamHeads(), ""
        while page := self._log.query(_HEADS, (after, self.position, PAGE)):
            for stream, version, state in page:
                heads.tell(stream, version, hash_in(state, where=f"{stream!r} version {version}"))
            after = page[-1][0]
            if not may_go_on():
                return False
        self._heads = heads
        return True

    def take(self, key: PrivateKey | None = None, origin: str | None = None) -> CheckpointTaken:
        """Return a checkpoint of the events so far, signed if there is a key, as a note of that origin too."""
        heads = self._heads
        event = CheckpointTaken(
            position=self.position,
            count=self._tree.size,
            rolling=self._rolling.hexdigest(),
            events_root=self._tree.root.hex(),
            peaks=tuple(peak.hex() for peak in self._tree.peaks),
            previous=None if self.last is None else self.last.hash,
            heads_root=None if heads is None else heads.root.hex(),
            streams=None if heads is None else heads.streams,
            unsaid=self._unsaid.hexdigest() if self._is_known else None,
            key_id=None if key is None else key.public.id,
        )
        if key is None:
            return event
        checkpoint, origin = (
            checkpoint_of(self._log.log_id, event),
            origin or default_origin(self._log.log_id),
        )
        note = signed_note(note_of(checkpoint, origin).text, key, origin).line
        return msgspec.structs.replace(event, signature=key.sign(checkpoint.text), note=note)

    def appended(self, recorded: Recorded) -> None:
        """Go on from a checkpoint that is in the log now.

        Raises:
            CorruptEvent: that is no checkpoint of what was folded.
        """
        event = recorded.event
        if not isinstance(event, CheckpointTaken) or event.position != self.position:
            raise CorruptEvent(f"position {recorded.position} is no checkpoint of position {self.position}")
        self._go_on_from(recorded, event)
        self.taken += 1
        self.fresh = 0
        self.has_erased = False

    def _go_on_from(self, recorded: Recorded, event: CheckpointTaken) -> None:
        self.last = checkpoint_of(self._log.log_id, event)
        self.last_at, self.last_time = recorded.position, recorded.time
        self._rolling, self._unsaid, self._is_known = sha256(), sha256(), True

    def _begin(self) -> None:
        ((version, self.taken),) = self._log.query(_LAST, (STREAM, TAKEN))
        if version is not None:
            (recorded,) = self._log.stream(STREAM, after=version - 1, to=version)
            event = recorded.event
            if isinstance(event, CheckpointTaken):
                self._go_on_from(recorded, event)
                self.position = event.position
                self._tree = tree_of(event, where=f"position {recorded.position}")
        self._begun = True


def append_of(log_id: str, event: CheckpointTaken, *, time: int) -> StreamAppend:
    """Return the append of a checkpoint; its id is derived from its position, so that each position has one."""
    draft = Draft(event=event, id=ids.derive(log_id, "checkpoint", event.position), time=time)
    return StreamAppend(stream=STREAM, expected=ANY_VERSION, drafts=(draft,))


def tree_of(event: CheckpointTaken, *, where: str) -> GrowingTree:
    """Return the tree that a checkpoint was taken of, to add leaves to it.

    Raises:
        CorruptEvent: its peaks are not those of such a tree.
    """
    try:
        tree = GrowingTree(event.count, map(bytes.fromhex, event.peaks))
    except ValueError:
        tree = GrowingTree()
    if len(tree.peaks) != event.count.bit_count() or tree.root.hex() != event.events_root:
        raise CorruptEvent(f"{where}: the checkpoint there can't be continued from")
    return tree


_OWN: Final = frozenset({TAKEN, PUBLISHED})
"""What is nothing new: else each checkpoint would be the reason for the next."""
