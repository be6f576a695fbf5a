"""How the log of a redacted bundle is kept: rows that withhold something, with events that say so (BUNDLE-24)."""

from array import array
from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from typing import Final, Literal, NamedTuple, Protocol, cast

from intersession_events.facts import Erased, WithheldKind
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
