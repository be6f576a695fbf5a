"""The targets of published checkpoints: a file that only grows, a URL, a program, witnesses, an authority for timestamps."""

import base64
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
from intersession_actors.rules.config.host import Checkpoints
from intersession_actors.rules.errors import ConfigError, ConfigProblem
from intersession_events.basics.errors import BadKey, MissingExtra
from intersession_events.facts import PublishedTo
from intersession_events.log.log import Log
from intersession_events.proofs.notes import noted
from intersession_events.proofs.signatures import PrivateKey, is_key_name, named_key, read_private
from intersession_events.proofs.statement import Checkpoint
from intersession_events.proofs.timestamps import timestamp_problem, timestamp_request

COMMAND_SECONDS: Final = 30.0
_MOST_SAID: Final = 300


class NotPublished(Exception):
    """A target did not take a checkpoint; it may later."""


class Target(NamedTuple):
    """A target for checkpoints. `put` raises if it did not take one; `id` distinguishes it without naming it.

    `put` gets the log too, and returns what is to be kept of the answer. Of several that wait, one that `wants_last` gets the
    last alone. `has_notes` are for those that are signed as notes.
    """

    kind: PublishedTo
    id: str
    put: Callable[[Checkpoint, Log], str | None]
    name: str = ""
    wants_last: bool = False
    has_notes: bool = False

    @property
    def label(self) -> str:
        """How people are told of it."""
        return f"{self.kind} {self.name}".rstrip()


def publishing_targets(config: Config) -> Sequence[Target]:
    """Return the targets of a configuration, without using the network.

    Raises:
        ConfigError: one of them can't be.
    """
    wanted = config.checkpoints.publish
    found: list[Target] = []
    problems = host_problems("checkpoints.publish.allowHosts", wanted.allow_hosts)
    is_note = wanted.form == "note"
    content = _note if is_note else _line
    if wanted.file is not None:
        path = Path(wanted.file)
        if path.is_dir() or not path.absolute().parent.is_dir():
            problems.append(
                ConfigProblem(
                    "checkpoints.publish.file", f"{wanted.file!r} is no file in a directory that exists"
                )
            )
        place = _id("file", os.path.abspath(path))  # noqa: PTH100 - links stay
        found.append(Target("file", place, _to_file(path, content, b"\n" * is_note), has_notes=is_note))
    if wanted.webhook is not None:
        # Few publish, and HTTP brings the parts of e-mail with it.
        from intersession_actors.outside.channels.webhook import posting  # noqa: PLC0415

        kind = "text/plain; charset=utf-8" if is_note else "application/json"
        try:
            post = posting(wanted.webhook, allowed=wanted.allow_hosts, kind=kind)
            place = _id("webhook", wanted.webhook)
            found.append(Target("webhook", place, _to_webhook(post, content), has_notes=is_note))
        except (BadChannelUrl, DeliveryRefused) as error:
            problems.append(ConfigProblem("checkpoints.publish.webhook", str(error)))
    if wanted.command:
        place = _id("command", *wanted.command)
        found.append(Target("command", place, _to_command(wanted.command, content), has_notes=is_note))
    stamping = config.checkpoints.timestamp.command
    if stamping:
        found.append(
            Target("timestamp", _id("timestamp", *stamping), _to_authority(stamping), wants_last=True)
        )
    found += witness_targets(config.checkpoints, problems)
    if config.checkpoints.key_file is None and any(target.has_notes for target in found):
        what = "is missing: notes are signed (`publish.form`, `witnesses`); `intersession keys new FILE` makes a key"
        problems.append(ConfigProblem("checkpoints.keyFile", what))
    origin = config.checkpoints.origin
    if origin is not None and not is_key_name(origin):
        what = f"{origin[:80]!r} is no origin: it has 1 to 200 characters, and neither spaces nor +"
        problems.append(ConfigProblem("checkpoints.origin", what))
    if problems:
        raise ConfigError(problems)
    return found


def witness_targets(settings: Checkpoints, problems: list[ConfigProblem]) -> Sequence[Target]:
    """Return the witnesses of a configuration as targets, and note what is wrong with them."""
    found: list[Target] = []
    known: set[bytes] = set()
    for number, witness in enumerate(settings.witnesses):
        path = f"checkpoints.witnesses[{number}]"
        try:
            key = named_key(witness.key)
        except BadKey as error:
            problems.append(ConfigProblem(f"{path}.key", str(error)))
            continue
        if not key.is_witness or key.key.raw in known:
            what = (
                "is given twice"
                if key.key.raw in known
                else "is of a log: a witness shows its vkey when it starts"
            )
            problems.append(ConfigProblem(f"{path}.key", f"the key of {key.name} {what}"))
            continue
        known.add(key.key.raw)
        # Few have witnesses; and HTTP, as above.
        from intersession_actors.assembly.checkpoints.witnesses import cosigning  # noqa: PLC0415

        try:
            put = cosigning(witness.url, key, allowed=settings.publish.allow_hosts)
        except (BadChannelUrl, DeliveryRefused) as error:
            problems.append(ConfigProblem(f"{path}.url", str(error)))
            continue
        place = _id("witness", witness.url, witness.key)
        found.append(Target("witness", place, put, key.name, wants_last=True, has_notes=True))
    if settings.quorum > len(settings.witnesses):
        what = (
            f"{settings.quorum} of {len(settings.witnesses)} witnesses can't be; give as many, or 0 for all"
        )
        problems.append(ConfigProblem("checkpoints.quorum", what))
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


def _line(checkpoint: Checkpoint) -> bytes:
    return checkpoint.line


def _note(checkpoint: Checkpoint) -> bytes:
    return str(noted(checkpoint)).encode()


def _to_webhook(
    post: Callable[[bytes, str], object], content: Callable[[Checkpoint], bytes]
) -> Callable[[Checkpoint, Log], None]:
    def put(checkpoint: Checkpoint, _: Log) -> None:
        post(content(checkpoint), checkpoint.hash)

    return put


def _to_file(
    path: Path, content: Callable[[Checkpoint], bytes], between: bytes
) -> Callable[[Checkpoint, Log], None]:
    def put(checkpoint: Checkpoint, _: Log) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "rb+", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            # What was cut off while it was written stays a line of its own, and no part of the next.
            torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
            line = (b"\n" if torn else b"") + (between if size else b"") + content(checkpoint)
            if os.write(file.fileno(), line) != len(line):
                raise NotPublished(f"{path} took a part of a line: is its disk full?")
            os.fsync(file.fileno())

    return put


def _to_command(
    command: Sequence[str], content: Callable[[Checkpoint], bytes]
) -> Callable[[Checkpoint, Log], None]:
    def put(checkpoint: Checkpoint, _: Log) -> None:
        _output(command, content(checkpoint))

    return put


def _to_authority(command: Sequence[str]) -> Callable[[Checkpoint, Log], str]:
    def put(checkpoint: Checkpoint, _: Log) -> str:
        response = _output(command, timestamp_request(bytes.fromhex(checkpoint.hash)))
        problem = timestamp_problem(response, bytes.fromhex(checkpoint.hash))
        if problem is not None:
            raise NotPublished(f"the command gave no timestamp: {problem}")
        return base64.b64encode(response).decode()

    return put


def _output(command: Sequence[str], content: bytes) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603 - the operator's own program, without a shell
            list(command),
            input=content,
            capture_output=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotPublished(f"the command did not end within {COMMAND_SECONDS:.0f} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-_MOST_SAID:]
        raise NotPublished(f"the command ended with {done.returncode}{': ' if said else ''}{said}")
    return done.stdout
