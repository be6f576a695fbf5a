"""The targets of published checkpoints: a file that only grows, a URL, a program (`checkpoints.publish`)."""

import os
import subprocess
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from intersession_actors.outside.channels.channels import DeliveryRefused
from intersession_actors.outside.channels.configured import host_problems
from intersession_actors.outside.channels.url import BadChannelUrl
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import ConfigError, ConfigProblem
from intersession_events.basics.errors import BadKey, MissingExtra
from intersession_events.facts import PublishedTo
from intersession_events.proofs.signatures import PrivateKey, read_private
from intersession_events.proofs.statement import Checkpoint

COMMAND_SECONDS: Final = 30.0
_MOST_SAID: Final = 300


class NotPublished(Exception):
    """A target did not take a checkpoint; it may later."""


class Target(NamedTuple):
    """A target for checkpoints. `put` raises if it did not take one; `id` distinguishes it without naming it."""

    kind: PublishedTo
    id: str
    put: Callable[[Checkpoint], object]


def publishing_targets(config: Config) -> Sequence[Target]:
    """Return the targets of a configuration, without using the network.

    Raises:
        ConfigError: one of them can't be.
    """
    wanted = config.checkpoints.publish
    found: list[Target] = []
    problems = host_problems("checkpoints.publish.allowHosts", wanted.allow_hosts)
    if wanted.file is not None:
        path = Path(wanted.file)
        if path.is_dir() or not path.absolute().parent.is_dir():
            problems.append(
                ConfigProblem(
                    "checkpoints.publish.file", f"{wanted.file!r} is no file in a directory that exists"
                )
            )
        found.append(Target("file", _id("file", os.path.abspath(path)), _to_file(path)))  # noqa: PTH100 - links stay
    if wanted.webhook is not None:
        # Few publish, and HTTP brings the parts of e-mail with it.
        from intersession_actors.outside.channels.webhook import posting  # noqa: PLC0415

        try:
            post = posting(wanted.webhook, allowed=wanted.allow_hosts)
            found.append(Target("webhook", _id("webhook", wanted.webhook), _to_webhook(post)))
        except (BadChannelUrl, DeliveryRefused) as error:
            problems.append(ConfigProblem("checkpoints.publish.webhook", str(error)))
    if wanted.command:
        found.append(Target("command", _id("command", *wanted.command), _to_command(wanted.command)))
    if problems:
        raise ConfigError(problems)
    return found


def signing_key(config: Config) -> PrivateKey | None:
    """Return the key that signs checkpoints; None if none is configured.

    Raises:
        ConfigError: it can't be used, or the extra `sign` is not installed.
    """
    file = config.checkpoints.key_file
    if file is None:
        return None
    try:
        return read_private(Path(file))
    except (BadKey, MissingExtra) as error:
        raise ConfigError([ConfigProblem("checkpoints.keyFile", str(error))]) from error


def _id(*place: str) -> str:
    return sha256(msgspec.json.encode(place)).hexdigest()[:16]


def _to_webhook(post: Callable[[bytes, str], object]) -> Callable[[Checkpoint], None]:
    def put(checkpoint: Checkpoint) -> None:
        post(checkpoint.line, checkpoint.hash)

    return put


def _to_file(path: Path) -> Callable[[Checkpoint], None]:
    def put(checkpoint: Checkpoint) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "rb+", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            # What was cut off while it was written stays a line of its own, and no part of the next.
            torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
            line = (b"\n" if torn else b"") + checkpoint.line
            if os.write(file.fileno(), line) != len(line):
                raise NotPublished(f"{path} took a part of a line: is its disk full?")
            os.fsync(file.fileno())

    return put


def _to_command(command: Sequence[str]) -> Callable[[Checkpoint], None]:
    def put(checkpoint: Checkpoint) -> None:
        try:
            done = subprocess.run(  # noqa: S603 - the operator's own program, without a shell
                list(command),
                input=checkpoint.line,
                capture_output=True,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NotPublished(f"the command did not end within {COMMAND_SECONDS:.0f} s") from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-_MOST_SAID:]
            raise NotPublished(f"the command ended with {done.returncode}{': ' if said else ''}{said}")

    return put
