"""Files of a session's messages as an agent or a channel gets them (FILE-3, FILE-6)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self, final

from intersession_events.facts import FileBlock
from intersession_events.log.files import ReadsFiles


@final
class StoredFile:
    """A file of a message. Its content and its name are untrusted.

    `size` is in bytes, `sha256` in hexadecimal digits. `mime_type` is what the content is, as far as its bytes say; `claimed` is
    the type that the sender gave it, where that is another one.
    """

    __slots__ = ("_store", "claimed", "mime_type", "name", "sha256", "size")

    def __init__(self, block: FileBlock, store: ReadsFiles | None) -> None:
        self.name: Final = block.name
        self.size: Final = block.size
        self.sha256: Final = block.sha256
        self.mime_type: Final = block.mime_type
        self.claimed: Final = block.claimed
        self._store = store

    @classmethod
    def all(cls, blocks: Sequence[FileBlock], store: ReadsFiles | None) -> tuple[Self, ...]:
        """Return files of a message."""
        return tuple(cls(block, store) for block in blocks)

    @property
    def path(self) -> Path | None:
        """The file that has the content, to be read only; None where it is not there, or in no file (PostgreSQL, memory)."""
        return None if self._store is None else self._store.path(self.sha256)

    def read(self) -> bytes:
        """Return the content. It may wait for a disk or a database.

        Raises:
            FileNotFoundError: it is not there: it was erased, or a fork's source does not have it any more.
            CorruptEvent: it is not what was written.
            StoreUnavailable: it can't be read now.
        """
        content = None if self._store is None else self._store.read(self.sha256)
        if content is None:
            raise FileNotFoundError(f"the content of {self.name} ({self.sha256}) is not there")
        return content

    def __eq__(self, other: object) -> bool:
        """Whether another file has the same name and content."""
        return isinstance(other, StoredFile) and (self.name, self.sha256) == (other.name, other.sha256)

    def __hash__(self) -> int:
        """Return a hash of what is compared."""
        return hash((self.name, self.sha256))

    def __repr__(self) -> str:
        """Return its name, type and size."""
        return f"<StoredFile {self.name} ({self.mime_type}, {self.size} bytes)>"
