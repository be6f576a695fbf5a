"""Checks the checkpoints of a log as its events come, beside what was published of them, without reading what came before again."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from intersession_events.facts import CheckpointTaken
from intersession_events.proofs.merkle import GrowingTree, leaf_hash
from intersession_events.proofs.published import Published
from intersession_events.proofs.signatures import Trusted
from intersession_events.proofs.statement import Checkpoint, checkpoint_of, line_of


class CheckpointsAlong:
    """Goes on from the last checkpoint of a copy. Events are given in order, behind those that the copy has.

    `published` are the checkpoints that were kept elsewhere, of whatever log.
    """

    def __init__(
        self, log_id: str, published: Sequence[Published] = (), trusted: Trusted | None = None
    ) -> None:
        self._log_id = log_id
        self._trusted = trusted or Trusted()
        self._published: Mapping[int, Published] = {
            one.position: one for one in published if one.log_id == log_id
        }
        self._tree = GrowingTree()
        self._since: list[tuple[int, bytes]] = []
        """The lines of the events behind the last checkpoint's position."""
        self._previous: str | None = None
        self.checked = 0
        """The last position that a checkpoint was checked for; `signed` by a trusted key, `published` as it was published."""
        self.signed = 0
        self.published = 0

    def begin(self, last: CheckpointTaken | None) -> None:
        """Go on from a checkpoint that was checked before; then the events behind its position are `take`n again."""
        if last is not None:
            self._tree = GrowingTree(last.count, map(bytes.fromhex, last.peaks))
            self._previous = checkpoint_of(self._log_id, last).hash
            self.checked = last.position

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
        yield from self._beside(said)
        self._since, self._previous, self.checked = rest, said.hash, event.position

    def _beside(self, said: Checkpoint) -> Iterator[str]:
        known = self._published.get(said.position)
        if known is not None:
            if known.hash == said.hash:
                self.published = said.position
            else:
                yield f"another checkpoint of position {said.position} was published"
        key = self._trusted.of(said.key_id)
        if key is None:
            return
        if key.has_signed(said.text, said.signature or ""):
            self.signed = said.position
        else:
            yield f"the checkpoint of position {said.position} was not signed by the key {key.id}"

    def missing(self, head: int) -> Iterator[str]:
        """Yield what was published and is not in the log, whose last event is at `head`."""
        for position in sorted(self._published):
            if position > head:
                yield f"a checkpoint of position {position} was published, and the log ends at {head}: its end was cut off"
                return
            if self.published < position <= self.checked:
                yield f"the checkpoint of position {position} that was published is not in the log"
                return
