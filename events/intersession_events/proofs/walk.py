"""Compares checkpoints with the events that they cover, in one pass over all events. Used by verification."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final, Literal, NamedTuple

import msgspec

from intersession_events.basics.errors import BadCheckpoint
from intersession_events.facts import CheckpointTaken
from intersession_events.proofs.merkle import GrowingTree, leaf_hash
from intersession_events.proofs.notes import NoteSignature, PublishedNote, TreeNote, noted
from intersession_events.proofs.published import Published
from intersession_events.proofs.signatures import NamedKey, Trusted
from intersession_events.proofs.statement import Checkpoint, checkpoint_of, line_of, unsaid_line
from intersession_events.proofs.stream_heads import StreamHeads

ProblemCode = Literal[
    "checkpoint_mismatch",
    "checkpoint_forged",
    "checkpoint_unsigned",
    "head_mismatch",
    "tail_cut",
    "other_log",
]


class Problem(NamedTuple):
    """What is wrong with a checkpoint; `position` and `version` are those of its event, if it is in the log."""

    code: ProblemCode
    said: str
    position: int | None = None
    version: int | None = None


class Taken(NamedTuple):
    """A checkpoint of the log itself, and where its event stands."""

    event: CheckpointTaken
    position: int
    version: int


class CheckpointsSeen(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The checkpoints that a verification compared: how many, and the last position that each kind of them proves."""

    taken: int = 0
    """How many the log holds."""
    up_to: int = 0
    """Up to here the log's own checkpoints are true: whoever can't hash has changed, moved, cut or removed nothing."""
    signed_up_to: int = 0
    """The same against whoever can hash, by signatures that were checked with a trusted key."""
    published_up_to: int = 0
    """The same, by checkpoints that were published before."""
    cosigned_up_to: int = 0
    """The same, by cosignatures of as many trusted witnesses as the quorum wants (TLOG-4)."""
    cosigned_ms: int = 0
    """When the last of them said so, by their own clocks."""
    witnesses: dict[str, int] = {}
    """Up to where each trusted witness has cosigned, by its name."""
    keys: dict[str, int] = {}
    """How many of the log's checkpoints each key has signed, by its id; checked or not."""


class CheckpointWalk:
    """Takes every event of a log in order, and reports the checkpoints that do not match them.

    `taken` are the log's own, in their order, with the `cosignatures` that the log has of each, by its position; `published` are
    kept elsewhere. Without either it does nothing.
    """

    def __init__(
        self,
        log_id: str,
        taken: Sequence[Taken],
        *,
        published: Sequence[Published] = (),
        trusted: Trusted | None = None,
        cosignatures: Mapping[int, Sequence[NoteSignature]] = {},
    ) -> None:
        self._log_id = log_id
        self._trusted = trusted or Trusted()
        self._taken = taken
        self._published = published
        self._cosignatures = cosignatures
        self._by_position = {one.event.position: one.event for one in taken}
        self._due: list[Taken | Published] = sorted(
            [*taken, *(one for one in published if one.log_id == log_id)], key=_place_of, reverse=True
        )
        self._rolling = sha256()
        self._unsaid = sha256()
        self._is_known = True
        self._wants_left = any(_unsaid_of(one) is not None for one in self._due)
        self._true: list[int] = []
        """The positions of checkpoints that are true; `_says_left` has those that say what is left of events without words."""
        self._says_left: set[int] = set()
        self._tree = GrowingTree()
        self._heads = StreamHeads()
        self._wants_heads = any(_heads_root_of(one) is not None for one in self._due)
        self._previous: str | None = None
        self._position = 0
        self._problems: list[Problem] = []
        self._up_to = self._signed_up_to = self._published_up_to = 0
        self._keys: Counter[str] = Counter()
        self._cosigned_up_to = self._cosigned_ms = 0
        self._witnesses: dict[str, int] = {}
        self._checked = False
        """Whether the last published one that is true was signed with a trusted key, or cosigned by a quorum."""

    def take(self, position: int, stream: str, version: int, hashed: str | None) -> None:
        """Take the next event; `hashed` is None for one that can't be read."""
        while self._due and _place_of(self._due[-1]) < position:
            self._compare(self._due.pop())
        self._position = position
        if not self._due:
            return
        line = line_of(position, hashed)
        self._rolling.update(line)
        self._tree.add(leaf_hash(line))
        if self._wants_heads and hashed is not None:
            self._heads.tell(stream, version, hashed)

    @property
    def wants_left(self) -> bool:
        """Whether `leave` must be called with what is left of events without their texts."""
        return self._wants_left and bool(self._due)

    def leave(self, position: int, left: bytes | None, *, is_known: bool = True) -> None:
        """Take what is left, without its texts, of the event that was taken last; None if it has no text."""
        if left is not None:
            self._unsaid.update(unsaid_line(position, left))
        self._is_known = self._is_known and is_known

    def over(self, position: int) -> tuple[int, bool] | None:
        """Return the position of the first true checkpoint that covers an event, and whether it also covers what is left without texts."""
        at = bisect_left(self._true, position)
        return None if at == len(self._true) else (self._true[at], self._true[at] in self._says_left)

    def end(self) -> Sequence[Problem]:
        """Compare what remains, and return all problems."""
        while self._due and _place_of(self._due[-1]) <= self._position:
            self._compare(self._due.pop())
        for one in self._due:
            where = _place_of(one)
            if isinstance(one, Taken):
                self._find(one, f"it is of position {where}, and the log ends at {self._position}")
            else:
                self._problems.append(
                    Problem(
                        "tail_cut",
                        f"a checkpoint of position {where} was published, the log ends at {self._position}",
                    )
                )
        if self._published and not any(one.log_id == self._log_id for one in self._published):
            ids = ", ".join(sorted({one.log_id for one in self._published})[:3])
            self._problems.append(Problem("other_log", f"what was published is of the log {ids}"))
        if self._trusted.ids and not self._signed_up_to and not self._checked:
            self._problems.append(
                Problem(
                    "checkpoint_unsigned",
                    f"no checkpoint is signed by a trusted key ({', '.join(self._trusted.ids)})",
                )
            )
        if self._trusted.witnesses and not self._cosigned_up_to:
            names = ", ".join(witness.name for witness in self._trusted.witnesses)
            wanted = f"{self._trusted.quorum} of the trusted witnesses ({names})"
            self._problems.append(Problem("checkpoint_unsigned", f"no checkpoint is cosigned by {wanted}"))
        return self._problems

    @property
    def seen(self) -> CheckpointsSeen:
        """What was compared."""
        return CheckpointsSeen(
            taken=len(self._taken),
            up_to=self._up_to,
            signed_up_to=self._signed_up_to,
            published_up_to=self._published_up_to,
            keys=dict(sorted(self._keys.items())),
            cosigned_up_to=self._cosigned_up_to,
            cosigned_ms=self._cosigned_ms,
            witnesses=dict(sorted(self._witnesses.items())),
        )

    def unproven(self) -> Iterator[str]:
        """Say what the checkpoints leave unproven themselves: signatures that were not checked."""
        if unknown := sorted(self._keys.keys() - {*self._trusted.ids}):
            yield (
                f"That checkpoints are genuine which the key {', '.join(unknown)} has signed: those signatures were not "
                "checked, since that key is not trusted (`--trust`)."
            )
        if self._published_up_to and not self._checked:
            yield (
                "That the published checkpoints themselves are genuine: no signature of the last one was checked. All "
                "that follows from them is proven only if they are."
            )

    def _compare(self, one: Taken | Published) -> None:
        if not isinstance(one, Taken):
            self._compare_published(one)
            return
        event = one.event
        told = [
            *(
                ["the events up to it are not those, or not in the order, that it was taken of"]
                * self._moved(event)
            ),
            *([_OTHERWISE_LEFT] * self._leaves_otherwise(event.unsaid)),
            *(["it does not follow the checkpoint before it"] * (event.previous != self._previous)),
            *(["it stands before events that it says it was taken of"] * (one.position <= event.position)),
        ]
        if told:
            self._find(one, "; ".join(told))
        elif not self._problems:
            self._up_to = event.position
            self._note_true(event.position, event.unsaid)
        said = checkpoint_of(self._log_id, event)
        if event.key_id is not None:
            self._keys[event.key_id] += 1
            self._check_signature(one, said)
        if self._up_to == event.position:
            self._check_note(said, one)
        self._previous = said.hash
        self._rolling, self._unsaid, self._is_known = sha256(), sha256(), True

    def _note_true(self, position: int, unsaid: str | None) -> None:
        if self._true[-1:] != [position]:
            self._true.append(position)
        if unsaid is not None and self._is_known:
            self._says_left.add(position)

    def _leaves_otherwise(self, unsaid: str | None) -> bool:
        return unsaid is not None and self._is_known and unsaid != self._unsaid.hexdigest()

    def _moved(self, event: CheckpointTaken) -> bool:
        """Whether the events are not what a checkpoint says of them. Of two that one change makes untrue, the first is told."""
        if event.rolling != self._rolling.hexdigest():
            return True
        if self._problems:
            return False
        return (
            event.count != self._tree.size
            or event.events_root != self._tree.root.hex()
            or event.peaks != tuple(peak.hex() for peak in self._tree.peaks)
            or self._heads_differ(event.heads_root, event.streams)
        )

    def _heads_differ(self, root: str | None, streams: int | None) -> bool:
        return root is not None and (root, streams) != (self._heads.root.hex(), self._heads.streams)

    def _compare_published(self, one: Published) -> None:
        said = (one.count, one.events_root)
        note = one.note if isinstance(one, PublishedNote) else None
        if isinstance(one, PublishedNote):
            # It says by its hash what the log's own checkpoint says besides; another one there says nothing more.
            event = self._by_position.get(one.position)
            own = None if event is None else checkpoint_of(self._log_id, event)
            one = own if own is not None and own.hash == one.hash else _bare(one)
        if said != (self._tree.size, self._tree.root.hex()) or self._heads_differ(
            one.heads_root, one.streams
        ):
            self._problems.append(
                Problem(
                    "head_mismatch",
                    f"what lies before position {one.position} is not what the published checkpoint was taken of",
                )
            )
            return
        if self._leaves_otherwise(one.unsaid):
            said_so = f"the published checkpoint of position {one.position}: {_OTHERWISE_LEFT}"
            self._problems.append(Problem("head_mismatch", said_so))
            return
        key = self._trusted.of(one.key_id)
        if key is not None and not key.has_signed(one.text, one.signature or ""):
            self._problems.append(
                Problem(
                    "checkpoint_forged",
                    f"the published checkpoint of position {one.position} was not signed by the key {key.id}",
                )
            )
            return
        self._published_up_to = one.position
        self._note_true(one.position, one.unsaid)
        self._checked = key is not None
        if note is not None:
            named = None if key is None else NamedKey(note.origin, key)
            signed = named is not None and self._signed_at(note, named, one.position) is not None
            self._checked = self._count_witnesses(note, one.position) or signed

    def _check_signature(self, one: Taken, said: Checkpoint) -> None:
        key = self._trusted.of(said.key_id)
        if key is None:
            return
        if not key.has_signed(said.text, said.signature or ""):
            self._problems.append(
                Problem(
                    "checkpoint_forged", f"it was not signed by the key {key.id}", one.position, one.version
                )
            )
        elif self._up_to == said.position:
            self._signed_up_to = said.position

    def _check_note(self, said: Checkpoint, one: Taken) -> None:
        key = self._trusted.of(said.key_id)
        if key is None and not self._trusted.witnesses:
            return
        try:
            note = noted(said)
        except BadCheckpoint as error:
            self._problems.append(Problem("checkpoint_forged", str(error), one.position, one.version))
            return
        if note is not None:
            if key is not None:
                self._signed_at(note, NamedKey(note.origin, key), said.position)
            given = self._cosignatures.get(said.position, ())
            self._count_witnesses(
                msgspec.structs.replace(note, signatures=(*note.signatures, *given)), said.position
            )

    def _count_witnesses(self, note: TreeNote, position: int) -> bool:
        """Note which witnesses cosigned; return whether they are a quorum."""
        times = {
            witness.name: time
            for witness in self._trusted.witnesses
            if (time := self._signed_at(note, witness, position)) is not None
        }
        self._witnesses.update(dict.fromkeys(times, position))
        if not 0 < self._trusted.quorum <= len(times):
            return False
        self._cosigned_up_to = position
        self._cosigned_ms = sorted(times.values())[self._trusted.quorum - 1] * _MS
        return True

    def _signed_at(self, note: TreeNote, key: NamedKey, position: int) -> int | None:
        try:
            return note.signed_by(key)
        except BadCheckpoint as error:
            self._problems.append(Problem("checkpoint_forged", f"position {position}: {error}"))
            return None

    def _find(self, one: Taken, said: str) -> None:
        self._problems.append(Problem("checkpoint_mismatch", said, one.position, one.version))


_MS: Final = 1000
_OTHERWISE_LEFT: Final = (
    "what stands in the place of erased words is not what was left of the events that it was taken of"
)


def _bare(one: PublishedNote) -> Checkpoint:
    """Return what a note says of itself, where the log has not the checkpoint that it names."""
    return Checkpoint(
        log_id=one.log_id,
        position=one.position,
        count=one.count,
        rolling="",
        events_root=one.events_root,
    )


def _unsaid_of(one: Taken | Published) -> str | None:
    if isinstance(one, PublishedNote):
        return None
    return one.event.unsaid if isinstance(one, Taken) else one.unsaid


def _place_of(one: Taken | Published) -> int:
    return one.event.position if isinstance(one, Taken) else one.position


def _heads_root_of(one: Taken | Published) -> str | None:
    if isinstance(one, PublishedNote):
        return None
    return one.event.heads_root if isinstance(one, Taken) else one.heads_root
