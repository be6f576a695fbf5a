"""The keys of a log: a key for each stream and each file, wrapped by the master key; made, found, destroyed and wrapped anew (CRYPT)."""

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from intersession_events.basics.errors import BadKey, StoreUnavailable
from intersession_events.stores.keys.box import KEY_BYTES
from intersession_events.stores.keys.records import Header, KeyFile, KeyRecords, Stamp, Wrapped
from intersession_events.stores.keys.source import VARIABLE, Sessions, Source
from intersession_events.stores.keys.wrapping import (
    ID_BYTES,
    header_of,
    is_checked,
    is_vouched,
    noted,
    unwrapped,
    wrapped,
)

_REMEMBERED: Final = 4_096
"""Keys that are kept unwrapped."""
_LINE_BYTES: Final = 4_096
"""No line of a key is longer."""
_SESSION: Final = "session:"


@dataclass
class Known:
    """What this process knows of the master key of a log: where it was told that it is, and the one that it found last."""

    source: Source | None = None
    master: bytes | None = None


class WrappedKeys:
    """The keys of a log. Any thread may call it; the log's one writer makes keys.

    `known` says where the master key is, in the place of what is noted with the keys. A reader that can't have it sees the log
    without what is encrypted, and `trouble` says why.
    """

    def __init__(
        self, records: KeyFile, entropy: Callable[[int], bytes], *, known: Known | None = None
    ) -> None:
        self._records = records
        self._entropy = entropy
        self._known = Known() if known is None else known
        self._lock = threading.RLock()
        self._stamp: Stamp | None = None
        self._kept: KeyRecords
        self._by_id: dict[str, Wrapped] = {}
        self._of: dict[str, Wrapped] = {}
        self._open: dict[str, bytes] = {}
        self._master: bytes | None = None
        self._found_at: Source | None = None
        self.trouble: BadKey | None
        self._load()

    def keeps(self, owner: str) -> bool:
        """Whether what belongs to a stream is kept encrypted from now on."""
        sessions = self._kept.header.sessions
        if sessions == "all" or not owner.startswith(_SESSION):
            return bool(sessions)
        key = owner.removeprefix(_SESSION)
        return any(fnmatchcase(key, pattern) for pattern in sessions)

    def prepare(self, owners: Iterable[str]) -> None:
        """Make the keys that owners have not yet, in one write."""
        with self._lock:
            fresh = [owner for owner in owners if owner not in self._of and self.keeps(owner)]
            if fresh:
                self._make(fresh)

    def has(self, owner: str) -> bool:
        """Whether an owner has a key, as far as this process has made or read it."""
        return owner in self._of

    def of(self, owner: str) -> bytes | None:
        """Return the key of an owner; None where there is none, or it is not at hand."""
        with self._lock:
            if owner not in self._of:
                self._refresh()
            found = self._of.get(owner)
            return None if found is None else self.opened(found.id)

    @property
    def header(self) -> Header:
        """How the log is kept."""
        return self._kept.header

    @property
    def source(self) -> Source | None:
        """Where its master key was found; None where it is not at hand."""
        return self._found_at

    @property
    def shown(self) -> str:
        """The place of the keys, in words."""
        return self._records.shown

    def all(self) -> Sequence[Wrapped]:
        """Return all keys, as they are wrapped, in the order in which they were made."""
        with self._lock:
            self._load()
            return tuple(self._by_id.values())

    def ids(self, owners: Collection[str]) -> list[str]:
        """Return the ids of the keys of streams or files that are there, sorted."""
        wanted = frozenset(owners)
        with self._lock:
            self._refresh()
            return sorted(
                key.id for key in self._by_id.values() if key.owner in wanted and key.destroyed is None
            )

    def destroy(self, ids: Collection[str], now_ms: int) -> None:
        """Destroy keys for good: what they encrypted can't be read any more, here and in any copy of the log (CRYPT-4).

        Raises:
            StoreUnavailable: they can't be written over.
        """
        if not ids:
            return
        with self._lock, self._records.held() as file:
            self._refresh()
            # Not all keys are read again: it is the writer's turn, and there may be a hundred thousand.
            for key in file.destroy(frozenset(ids), now_ms):
                self._by_id[key.id] = key
                self._open.pop(key.id, None)
                if (known := self._of.get(key.owner)) is not None and known.id == key.id:
                    del self._of[key.owner]
            self._stamp = self._records.stamp()

    def rotate(self, source: Source, master: bytes) -> int:
        """Wrap all keys anew by another master key, and return their number (CRYPT-3).

        Raises:
            StoreUnavailable: the present master key is not at hand, or they can't be written.
        """
        with self._lock, self._records.held():
            self._load()
            known = {name: self.must(name) for name, key in self._by_id.items() if key.destroyed is None}
            header = header_of(source, master, self._kept.header.sessions, self._entropy, before=self._master)
            keys = [
                wrapped(master, key.id, key.owner, known[key.id], self._entropy) if key.id in known else key
                for key in self._by_id.values()
            ]
            self._known.source = source
            self._records.write(KeyRecords(header, keys))
            self._load()
            return len(known)

    def change(self, sessions: Sessions) -> None:
        """Note which sessions are kept encrypted from now on, and where the master key is.

        Raises:
            StoreUnavailable: it can't be written.
        """
        with self._lock, self._records.held():
            self._refresh()
            source, master = self._found_at, self._master
            if source is None or master is None:
                raise StoreUnavailable(str(self.trouble))
            if (self._kept.header.master, self._kept.header.sessions) != (noted(source), sessions):
                header = header_of(source, master, sessions, self._entropy)
                self._records.write(KeyRecords(header, (*self._by_id.values(),)))
                self._load()

    def must(self, name: str) -> bytes:
        """Return a key.

        Raises:
            StoreUnavailable: it can't be had.
        """
        key = self.opened(name)
        if key is None:
            raise StoreUnavailable(
                str(self.trouble or f"{self._records.shown} has no key {name} that could be read")
            )
        return key

    def key_of(self, owner: str) -> tuple[str, bytes]:
        """Return the id of an owner's key, and the key, which is made if there is none.

        Raises:
            StoreUnavailable: it can't be made.
        """
        with self._lock:
            self.prepare((owner,))
            found = self._of[owner]
            return found.id, self.must(found.id)

    def _make(self, owners: Sequence[str]) -> None:
        with self._records.held() as file:
            self._refresh()  # the master key may be another one now
            if self._master is None:
                raise StoreUnavailable(str(self.trouble))
            made = [
                wrapped(
                    self._master,
                    self._entropy(ID_BYTES).hex(),
                    owner,
                    self._entropy(KEY_BYTES),
                    self._entropy,
                )
                for owner in owners
                if owner not in self._of
            ]
            if made:
                file.add(made)
                self._take(made)
                self._stamp = self._records.stamp()

    def opened(self, name: str) -> bytes | None:
        """Return a key by its id; None where there is none, or it is not at hand."""
        key = self._open.get(name)
        if key is not None:
            return key
        with self._lock:
            if name not in self._by_id:
                self._refresh()
            found = self._by_id.get(name)
            if found is None or self._master is None or found.destroyed is not None:
                return None
            key = unwrapped(self._master, found)
            if key is not None:
                self._open[name] = key
                if len(self._open) > _REMEMBERED:
                    del self._open[next(iter(self._open))]
            return key

    def _refresh(self) -> None:
        before, now = self._stamp, self._records.stamp()
        if before is None or now is None or now.inode != before.inode or now.size <= before.size:
            if now != before:
                self._load()
            return
        # Each stream that begins adds a key: what was read is not read again. From the line before, which may have been cut.
        self._take(self._records.added(max(before.size - _LINE_BYTES, 0)))
        self._stamp = now

    def _load(self) -> None:
        self._stamp = self._records.stamp()
        kept = self._records.load()
        is_same = self._master is not None and kept.header == self._kept.header
        self._kept = kept
        self._by_id, self._of, self._open = {}, {}, {}
        self._take(self._kept.keys)
        if is_same:
            return  # a command that prints it is not run again
        self._master, self._found_at, self.trouble = None, None, None
        try:
            self._master, self._found_at = self._found()
        except BadKey as error:
            self.trouble = error
        else:
            self._known.master = self._master

    def _found(self) -> tuple[bytes, Source]:
        """Return the master key, and where it was found.

        Raises:
            BadKey: it can't be had.
        """
        header, source, before = self._kept.header, self._known.source, self._known.master
        if source is not None:
            try:
                before = source.key()
                if is_checked(header, before):
                    return before, source
            except BadKey:
                # It was rotated, and the old one destroyed, while this process runs.
                if before is None:
                    raise
            # A writer of this file is not believed: a key that was right must say which comes after it.
            if not is_vouched(header, before) and not is_checked(header, before):
                raise self._another(source)
        if header.master is None:
            raise BadKey(
                f"the master key of {self._records.shown} comes from a command: name that in encryption.keys, or in "
                f"${VARIABLE}"
            )
        master = header.master.key()
        if not is_checked(header, master):
            raise self._another(header.master)
        return master, header.master

    def _another(self, source: Source) -> BadKey:
        return BadKey(
            f"{source} is not the master key of {self._records.shown}: bring that back from its copy. Without it the log can be "
            "read, but for what is encrypted in it"
        )

    def _take(self, keys: Iterable[Wrapped]) -> None:
        for key in keys:
            self._by_id[key.id] = key
            if key.destroyed is None:
                self._of[key.owner] = key
