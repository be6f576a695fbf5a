"""The file that names the logs of a fleet: the store of each, and the id that proves that it is still the same log (FLEET-1)."""

import fcntl
import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE
from typing import Final

import msgspec

from intersession_events.basics.errors import IntersessionError
from intersession_events.basics.machine import on_disk, private_file, read_at_most, sync
from intersession_events.facts import ready

VARIABLE: Final = "INTERSESSION_FLEET"
DEFAULT_PATH: Final = "fleet.json"

_MOST_BYTES: Final = 16 * 1024 * 1024
_MOST_LOGS: Final = 10_000
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_SHOWN: Final = 80


class FleetRefused(IntersessionError, ValueError):
    """A file of logs, or a log that is named, added or moved in it, is not what it should be. Nothing was changed."""


class FleetLog(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A log of a fleet: the URL by which it is opened, and its id. The URL may hold a password."""

    store: str
    log_id: str

    def __repr__(self) -> str:
        """Return it without what may be a password."""
        return f"FleetLog(log_id={self.log_id!r})"


@ready
class _File(msgspec.Struct, forbid_unknown_fields=True):
    logs: dict[str, FleetLog] = {}


class Register:
    """The file itself. Each change reads it, and puts a whole new one into its place, under a lock beside it."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path

    def logs(self) -> Mapping[str, FleetLog]:
        """Return its logs by name, sorted; none where there is no file.

        Raises:
            FleetRefused: it is no such file.
            StoreUnavailable: it can't be read.
        """
        try:
            with on_disk(self.path):
                text = read_at_most(self.path, _MOST_BYTES) if self.path.exists() else b"{}"
            found = msgspec.json.decode(text, type=_File).logs
        except msgspec.MsgspecError as error:
            raise FleetRefused(f"{self.path} is no file of a fleet: {error}") from None
        for name in found:
            checked(name)
        return dict(sorted(found.items()))

    @contextmanager
    def changed(self) -> Generator[dict[str, FleetLog]]:
        """Lend the logs for a block that changes them, and write them down once it ends without an error.

        Raises:
            FleetRefused: it is no such file, or there are too many logs.
            StoreUnavailable: it can't be written.
        """
        lock = f"{self.path}.lock"
        with on_disk(lock):
            held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            logs = dict(self.logs())
            yield logs
            if len(logs) > _MOST_LOGS:
                raise FleetRefused(f"a fleet has at most {_MOST_LOGS} logs: begin a second file")
            self._write(logs)
        finally:
            os.close(held)

    def _write(self, logs: Mapping[str, FleetLog]) -> None:
        text = msgspec.json.format(msgspec.json.encode(_File(logs=dict(sorted(logs.items())))), indent=2)
        write_whole(self.path, text + b"\n")


def write_whole(name: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write a file, in the place of one that is there, so that a reader gets either of them whole. `mode` is that of a new file.

    Raises:
        StoreUnavailable: it can't be written.
    """
    path = Path(os.path.realpath(name))  # a link stays one
    part = path.with_name(f".{path.name}.part")
    with on_disk(path):
        part.unlink(missing_ok=True)
        with private_file(part, new=True) as file:
            file.write(content)
        # Its owner may let a group read one that is there.
        part.chmod(S_IMODE(path.stat().st_mode) if path.exists() else mode)
        sync(part)
        part.replace(path)
        sync(path.parent)


def checked(name: str) -> str:
    """Return the name of a log.

    Raises:
        FleetRefused: it can't be one.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        raise FleetRefused(
            f"{ascii(name)[:_SHOWN]} is no name of a log: a-z, 0-9, - and _, at most 64 of them"
        )
    return name
