"""Checks the checkpoints of a log as its events come, beside what was published of them, without reading what came before again."""

from collections.abc import Iterator, Sequence
from hashlib import sha256

from intersession_events.facts import CheckpointTaken
from intersession_events.proofs.merkle import GrowingTree, leaf_hash
from intersession_events.proofs.published import Published
from intersession_events.proofs.signatures import Trusted
from intersession_events.proofs.statement import checkpoint_of, line_of


class CheckpointsAlong:
    """Goes on from the last checkpoint of a copy. Events are given in order, behind those that the copy has.

    `published` are the checkpoints that were kept elsewhere, of whatever log.
    """

    def __init__(
        self, log_id: str, published: Sequence[Published] = (), trusted: Trusted | None = None
    ) -> None:
        self._log_id = log_id
        self._trusted = trusted or Trusted()
        self._published: Sequence[Published] = ()
        self.know(published)
        self._tree = GrowingTree()
        self._since: list[tuple[int, bytes]] = []
        """The lines of the events behind the last checkpoint's position."""
        self._previous: str | None = None
        self._own: dict[int, str] = {}
        """The hashes of all checkpoints of the log, by their positions."""
        self.checked = 0
        """The last position that a checkpoint was checked for; `signed` by a trusted key, `published` as it was published."""
        self.signed = 0
        self.published = 0

    def know(self, published: Sequence[Published]) -> None:
        """Take what was published by now, in place of what was known before."""
        self._published = sorted(
            (one for one in published if one.log_id == self._log_id), key=lambda one: one.position
        )

    def begin(self, taken: Sequence[CheckpointTaken]) -> None:
        """Go on from the checkpoints that were checked before; then the events behind the last one's position are taken again."""
        said = [checkpoint_of(self._log_id, one) for one in taken]
        self._own = {one.position: one.hash for one in said}
        if taken:
            last = taken[-1]
            self._tree = GrowingTree(last.count, map(bytes.fromhex, last.peaks))
            self._previous, self.checked = said[-1].hash, last.position

    def take(self, position: int, hashed: str) -> None:
        """Take the next event."""
        self._since.append((position, line_of(position, hashed)))

    def check(self, event: CheckpointTaken) -> Iterator[str]:
        """Yield what is wrong with a checkpoint, in words; the events up to its position were taken."""
        rolling, tree, rest = sha256(), self._tree, list[tuple[int, bytes]]()
        for position, line in self._since:
            if position <= event.position:
                rolling.update(line)
                tree.add(leaf_hash(line))
            else:
                rest.append((position, line))
        said = checkpoint_of(self._log_id, event)
        is_true = (tree.size, tree.root.hex(), rolling.hexdigest()) == (
            event.count,
            event.events_root,
            event.rolling,
        )
        if not is_true:
            yield f"the events up to position {event.position} are not those that its checkpoint was taken of"
        if event.previous != self._previous:
            yield f"the checkpoint of position {event.position} does not follow the one before it"
        key = self._trusted.of(said.key_id)
        if key is not None and not key.has_signed(said.text, said.signature or ""):
            yield f"the checkpoint of position {said.position} was not signed by the key {key.id}"
        elif key is not None:
            self.signed = said.position
        self._own[said.position] = said.hash
        self._since, self._previous, self.checked = rest, said.hash, event.position

    def otherwise(self, head: int) -> Iterator[str]:
        """Yield what was published and is not so in the log, whose last event is at `head`."""
        for known in self._published:
            position = known.position
            if position > head:
                yield f"a checkpoint of position {position} was published, and the log ends at {head}: its end was cut off"
                return
            own = self._own.get(position)
            if own == known.hash:
                self.published = max(self.published, position)
            elif own is not None:
                yield f"another checkpoint of position {position} was published"
            elif position <= self.checked:
                yield f"the checkpoint of position {position} that was published is not in the log"
