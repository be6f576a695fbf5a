"""Where the master key comes from: a file, the keyring of the operating system, or a command (CRYPT-2)."""

import base64
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from intersession_events.basics.errors import BadKey
from intersession_events.facts import ready
from intersession_events.stores.keys.box import KEY_BYTES

VARIABLE: Final = "INTERSESSION_KEYS"
"""The variable of the environment that says where the master key is, for commands: the setting `encryption.keys` as JSON."""
ACCOUNT: Final = "master"
"""The name of the key in its service of the keyring."""
_MOST_BYTES: Final = 4_096
_TIMEOUT_S: Final = 30
_HOW: Final = "it is the base64 of 32 random bytes (`openssl rand -base64 32`)"


@ready
class Source(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A source of the master key: one of the three."""

    file: str | None = None
    """The path of a file that only its owner may read."""
    keyring: str | None = None
    """The name of a service, whose key is that of the account `master`."""
    command: tuple[str, ...] = ()
    """A program with its arguments, which prints the key."""

    def __post_init__(self) -> None:
        """Check that it is one.

        Raises:
            ValueError: there are none, or several.
        """
        if sum(map(bool, (self.file, self.keyring, self.command))) != 1:
            raise ValueError("name one source of the master key: file, keyring or command")

    def __str__(self) -> str:
        """Return it without the arguments of a command, which may be secrets."""
        if self.command:
            return f"the command {self.command[0]}"
        return f"the file {self.file}" if self.file else f"{ACCOUNT} of {self.keyring} in the keyring"

    def key(self) -> bytes:
        """Return the master key.

        Raises:
            BadKey: it can't be had, others may read it, or it is invalid.
        """
        text = self._of_command() if self.command else self._of_file() if self.file else self._of_keyring()
        key = b""
        with suppress(ValueError):
            key = base64.b64decode(text.strip(), validate=True)
        if len(key) != KEY_BYTES:
            raise BadKey(f"{self} holds no master key: {_HOW}")
        return key

    def _of_file(self) -> bytes:
        path = Path(self.file or "")
        try:
            with path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                text = file.read(_MOST_BYTES) if stat.S_ISREG(mode) else b""
        except (OSError, ValueError) as error:
            raise BadKey(f"{self}, with the master key, can't be read: {error}") from error
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise BadKey(f"{self} can be read by others (mode {stat.S_IMODE(mode):03o}): chmod 600 it")
        return text

    def _of_keyring(self) -> bytes:
        try:
            library: Any = import_module("keyring")  # of a library that few hosts have
        except ModuleNotFoundError as error:
            raise BadKey(f"{self} can't be read without the library keyring: pip install keyring") from error
        try:
            found: str | None = library.get_password(self.keyring, ACCOUNT)
        except Exception as error:  # whatever its backend raises
            raise BadKey(f"{self} can't be read: {type(error).__name__}: {error}") from error
        if found is None:
            raise BadKey(f"{self} is not there: `keyring set {self.keyring} {ACCOUNT}` takes it; {_HOW}")
        return found.encode()

    def _of_command(self) -> bytes:
        import subprocess  # noqa: PLC0415 - few logs need it, and each process would load it

        try:
            done = subprocess.run(self.command, capture_output=True, timeout=_TIMEOUT_S, check=False)  # noqa: S603 - the operator's
        except (OSError, subprocess.TimeoutExpired, ValueError) as error:
            raise BadKey(f"{self} printed no master key: {type(error).__name__}") from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise BadKey(
                f"{self} printed no master key, it ended with {done.returncode}: {''.join(said)[:200]}"
            )
        return done.stdout[:_MOST_BYTES]


Sessions = Literal["all"] | tuple[str, ...]
"""The sessions whose streams are kept encrypted, by patterns of their keys."""


class Encryption(NamedTuple):
    """How a configuration wants a log to be kept."""

    source: Source
    sessions: Sessions = "all"


def of_environment(environment: Mapping[str, str]) -> Source | None:
    """Return the source that the environment names; None if it names none.

    Raises:
        BadKey: it names an invalid one.
    """
    text = environment.get(VARIABLE)
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=Source)
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadKey(f'${VARIABLE} is invalid: {error}; it is as {{"file": "/path"}}') from error
