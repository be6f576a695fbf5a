"""How the log of a redacted bundle is kept: rows that withhold something with an event that says so, or rows of its own (BUNDLE-24)."""

from array import array
from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from typing import Final, Literal, NamedTuple, Protocol, cast

from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.basics.ids import derive
from intersession_events.copies.bundles.log_file import Derived
from intersession_events.facts import Erased, ForkedFrom, WithheldKind, decode
from intersession_events.log.envelope import FIRST, SALT_BYTES, seal
from intersession_events.log.erasing import erased_stream
from intersession_events.log.recorded import Draft
from intersession_events.log.row_state import opened
from intersession_events.log.sql import Row

Withheld = Literal["", "secrets", "words", "person"]
"""How a row differs from the recorded one.

Of all but `person` everything beside the payload is proven. `words`: the payload is what an erasure would leave. `secrets`:
parts of it are masked, which its issuer alone vouches for. `person`: the whole row is its issuer's word, but for its hash and
its position.
"""
BY: Final = "bundle"
"""Who withheld it, in the events of such a log."""


class Edited(NamedTuple):
    """A row as it stands in an edition: without its salt, where something is withheld."""

    row: Row
    withheld: Withheld = ""


class Editing(Protocol):
    """A redacted edition. One that `renames` is told all rows, in their order, before it edits any."""

    @property
    def renames(self) -> bool:
        """Whether it has other names for streams and ids, so that its rows have other hashes."""
        ...

    def note(self, row: Row) -> None:
        """Learn whom a row names."""
        ...

    def edited(self, row: Row) -> Edited:
        """Return a row without what is withheld."""
        ...


class WithheldRows:
    """The rows of an edition whose chains stay true: what is withheld in each stream, with the digest of what stands there."""

    def __init__(self) -> None:
        # Of very many rows: a version, and a digest behind those of the rows before.
        self._rows: defaultdict[tuple[str, WithheldKind], tuple[array[int], bytearray]] = defaultdict(
            lambda: (array("q"), bytearray())
        )

    def take(self, edited: Edited) -> Row:
        """Return a row as the log has it."""
        row = edited.row
        if edited.withheld:
            versions, digests = self._rows[row[1], cast("WithheldKind", edited.withheld)]
            versions.append(row[2])
            digests += sha256(opened(row[4], where=f"position {row[0]}").data).digest()
        return row

    def erased(self) -> Iterator[Erased]:
        """Yield the events that authorise what stands there."""
        for stream, kind in sorted(self._rows):
            versions, digests = self._rows[stream, kind]
            rows = (
                (version, digests[at * _DIGEST : (at + 1) * _DIGEST].hex())
                for at, version in enumerate(versions)
            )
            yield Erased(stream=stream, rows=tuple(rows), by=BY, reason=_REASONS[kind], edition=kind)


_DIGEST: Final = 32
_REASONS: Final = {
    "words": "what was said is withheld from this edition",
    "secrets": "secrets are masked in this edition",
}


class RenamedRows:
    """The rows of an edition with other names: a log of its own, which proves nothing of the one it was made of.

    It has nothing that a log says of itself: erasures name digests of payloads that it does not have, and the ids of reports and
    checkpoints follow from what they say.
    """

    def __init__(self, fork_id: str) -> None:
        self.log_id = derive(fork_id, "edition")
        self._salts = Derived(self.log_id)
        self._ends: dict[str, tuple[int, str]] = {}
        self._of_log: list[tuple[str, int, str]] = []

    def take(self, edited: Edited) -> Row | None:
        """Return a row as the log has it; None for one that it does not have."""
        position, stream, version, topic, state = edited.row
        if stream.startswith(_OF_ITSELF) or topic.startswith("checkpoint_"):
            return None
        envelope = opened(state, where=f"position {position}")
        payload = bytes(envelope.data)
        try:
            event = decode(topic, payload)
        except (CorruptEvent, UnknownTopic):
            return None
        draft = Draft(
            event=event,
            id=envelope.id,
            time=envelope.time,
            causation=envelope.causation,
            correlation=envelope.correlation,
        )
        sealed, recorded = seal(
            draft,
            topic,
            payload,
            log_id=self.log_id,
            stream=stream,
            version=version,
            epoch=envelope.epoch,
            prev=self._ends.get(stream, (0, FIRST))[1],
            salt=self._salts(SALT_BYTES),
        )
        if stream == _LOG:
            self._of_log.append((stream, version, recorded.hash))
        else:
            self._ends[stream] = (version, recorded.hash)
        return position, stream, version, topic, sealed

    def forked(self, forked: ForkedFrom) -> ForkedFrom:
        """Return how the log began: as a part of nothing that there is."""
        heads = tuple((stream, *self._ends[stream]) for stream in sorted(self._ends))
        return ForkedFrom(
            log_id=self.log_id, position=forked.position, flow="", heads=(*heads, *self._of_log), by=BY
        )


_OF_ITSELF: Final = (erased_stream(""), "import:")
_LOG: Final = "log"
