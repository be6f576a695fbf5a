"""Contents of files, each encrypted with a key of its own, under a name that does not tell what they are (CRYPT-5)."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, final

from intersession_events.stores.files.store import HIDDEN, MARK, Contents
from intersession_events.stores.keys.box import permuted
from intersession_events.stores.keys.keyring import Keyring

_NAMES: Final = "files"
"""The owner of the key that hides names."""


def encrypted(contents: Contents, keys: Keyring | None, now_ms: Callable[[], int] = lambda: 0) -> Contents:
    """Return a place whose contents are encrypted there; as it is for a log that is not kept so."""
    return contents if keys is None else Encrypted(contents, keys, now_ms)


@final
class Encrypted:
    """Contents in another place, encrypted. What was put there before the log was kept so is read as it is."""

    def __init__(self, contents: Contents, keys: Keyring, now_ms: Callable[[], int]) -> None:
        self._contents = contents
        self._keys = keys
        self._now_ms = now_ms

    def get(self, name: str) -> bytes | None:
        """Return the bytes of a name; None where there are none."""
        hidden = self._hidden(name)
        data = None if hidden is None else self._contents.get(hidden)
        if data is None:
            return self._contents.get(name)
        return data if name.endswith(MARK) else self._keys.unlocked(data) or data

    def put(self, name: str, data: bytes) -> None:
        """Store bytes encrypted; a mark says a position alone."""
        self._keys.prepare((_NAMES,))
        hidden = self._hidden(name) or name
        self._contents.put(hidden, data if name.endswith(MARK) else self._keys.locked(data, _owner(hidden)))

    def remove(self, name: str) -> None:
        """Remove a name, if it is there, and destroy its key: a copy of the folder can't be read either."""
        hidden = self._hidden(name)
        if hidden is not None:
            if not name.endswith(MARK):
                self._keys.destroy(self._keys.ids((_owner(hidden),)), self._now_ms())
            self._contents.remove(hidden)
        self._contents.remove(name)

    def names(self) -> Iterable[str]:
        """Return all names."""
        key = self._keys.of(_NAMES)
        for name in self._contents.names():
            hidden, is_hidden, mark = name.partition(HIDDEN)
            if is_hidden and key is not None:
                yield permuted(key, bytes.fromhex(hidden), back=True).hex() + mark
            elif not is_hidden:
                yield name

    def path(self, name: str) -> Path | None:
        """Return the file that has the bytes of a name as they are; None where none has."""
        return self._contents.path(name)

    @property
    def stored(self) -> Contents:
        """The other place."""
        return self._contents

    def _hidden(self, name: str) -> str | None:
        key = self._keys.of(_NAMES)
        if key is None:
            return None
        sha256, mark, _ = name.partition(MARK)
        return permuted(key, bytes.fromhex(sha256), back=False).hex() + HIDDEN + mark


def _owner(hidden: str) -> str:
    return f"file:{hidden}"
