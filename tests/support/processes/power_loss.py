"""What a disk may hold after the power failed: rebuilt from what a process really wrote and synced, seen by strace."""

import random
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

SECTOR = 512
CALLS = "openat,pwrite64,write,fdatasync,fsync,ftruncate,unlink"

_LINE = re.compile(r"(?P<pid>\d+) +(?P<rest>.*)", re.DOTALL)
_CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. (?P<name>\w+) resumed>")
_FD = re.compile(r"\d+<(?P<path>[^>]*)>")
_TEXT = re.compile(r'"(?P<hex>(?:\\x[0-9a-f]{2})*)"')

Kind = Literal["write", "sync", "truncate", "unlink", "ack"]


@dataclass(frozen=True)
class Operation:
    """Something that was done to a file; an `ack` is a line that somebody was told."""

    kind: Kind
    name: str
    offset: int = 0
    data: bytes = b""


def record(arguments: Sequence[str], trace: Path, environment: Mapping[str, str]) -> None:
    """Run a Python program to its end under strace."""
    subprocess.run(
        [  # noqa: S607 - found on the path, where Debian puts it
            "strace",
            "-f",
            "-y",
            "-xx",
            "-s",
            "70000",
            "-e",
            f"trace={CALLS}",
            "-o",
            str(trace),
            sys.executable,
            *arguments,
        ],
        env=dict(environment),
        check=True,
        timeout=60,
    )


def operations(trace: Path, log: Path, acks: Path) -> list[Operation]:
    """Read a trace: what was done to a log's files, in order, and what was acknowledged when.

    A call that another thread interrupts counts as early as it can for a write and an acknowledgement, and as late as it can
    for a sync.
    """
    found: list[Operation] = []
    waiting: dict[str, Operation] = {}
    for line in trace.read_text(encoding="ascii").splitlines():
        parts = _LINE.fullmatch(line)
        if parts is None:
            continue
        pid, rest = parts["pid"], parts["rest"]
        if resumed := _RESUMED.match(rest):
            if pid in waiting and resumed["name"] in {"fdatasync", "fsync"}:
                found.append(waiting.pop(pid))
            continue
        operation = _operation(rest, log, acks)
        if operation is None:
            continue
        if operation.kind == "sync" and "<unfinished" in rest:
            waiting[pid] = operation
        else:
            found.append(operation)
    return found


def _operation(rest: str, log: Path, acks: Path) -> Operation | None:
    call = _CALL.match(rest)
    if call is None:
        return None
    name, arguments = call["name"], call["arguments"]
    descriptor = _FD.match(arguments)
    path = Path(_unescaped(descriptor["path"])) if descriptor else None
    texts = [_unescaped(text["hex"]) for text in _TEXT.finditer(arguments)]
    if name == "unlink" and texts and Path(texts[0]).parent == log.parent:
        return Operation("unlink", Path(texts[0]).name)
    if path is None:
        return None
    if name == "write" and path == acks:
        return Operation("ack", path.name, data=texts[0].encode("latin-1"))
    if path == log.parent and name in {"fdatasync", "fsync"}:
        return Operation("sync", ".")
    if (
        path.parent != log.parent
        or not path.name.startswith(log.name)
        or path.name.endswith((".lock", "-shm"))
    ):
        return None
    match name:
        case "pwrite64":
            offset = int(arguments.split('", ')[1].split(", ")[1].split(")")[0].split(" ")[0])
            return Operation("write", path.name, offset, texts[0].encode("latin-1"))
        case "fdatasync" | "fsync":
            return Operation("sync", path.name)
        case "ftruncate":
            return Operation(
                "truncate", path.name, int(arguments.split(">, ")[1].split(")")[0].split(" ")[0])
            )
        case _:
            return None


def _unescaped(text: str) -> str:
    return bytes.fromhex(text.replace("\\x", "")).decode("latin-1") if text.startswith("\\x") else text


@dataclass
class Disk:
    """Files as they are for certain, and what was done to them since the last sync."""

    files: dict[str, bytearray] = field(default_factory=dict[str, bytearray])
    pending: list[Operation] = field(default_factory=list[Operation])
    acknowledged: list[str] = field(default_factory=list[str])

    def take(self, operation: Operation) -> None:
        """Do the next thing."""
        match operation.kind:
            case "ack":
                self.acknowledged += operation.data.decode().split()
            case "sync":
                # A file's sync writes its name as well, and a name that was taken away stays away with its directory's.
                done = [
                    each
                    for each in self.pending
                    if (each.kind == "unlink" if operation.name == "." else each.name == operation.name)
                ]
                self.pending = [each for each in self.pending if each not in done]
                for each in done:
                    _apply(self.files, each)
            case _:
                self.pending.append(operation)

    def after_power_loss(self, chance: random.Random) -> dict[str, bytes]:
        """Return the files as the disk may have them: of what is not synced, any part."""
        files = {name: bytearray(data) for name, data in self.files.items()}
        mood = chance.choice(("none", "all", "some", "some"))
        for operation in self.pending:
            if mood == "all" or (mood == "some" and chance.random() < 0.5):
                _apply(files, operation)
            elif mood == "some" and operation.kind == "write" and chance.random() < 0.5:
                for at in range(0, len(operation.data), SECTOR):
                    if chance.random() < 0.5:
                        piece = operation.data[at : at + SECTOR]
                        _apply(files, Operation("write", operation.name, operation.offset + at, piece))
        return {name: bytes(data) for name, data in files.items()}


def _apply(files: dict[str, bytearray], operation: Operation) -> None:
    if operation.kind == "unlink":
        files.pop(operation.name, None)
        return
    data = files.setdefault(operation.name, bytearray())
    if operation.kind == "truncate":
        del data[operation.offset :]
        data.extend(bytes(operation.offset - len(data)))
        return
    end = operation.offset + len(operation.data)
    if len(data) < end:
        data.extend(bytes(end - len(data)))
    data[operation.offset : end] = operation.data


def images(
    done: Sequence[Operation], number: int, *, seed: int = 0
) -> Iterator[tuple[dict[str, bytes], list[str]]]:
    """Yield so many disks after a power loss at any moment, each with what had been acknowledged by then.

    The moments lie behind the first acknowledgement: before it there is nothing to lose.
    """
    chance = random.Random(seed)  # noqa: S311 - tests want the same again
    first = next(index for index, operation in enumerate(done) if operation.kind == "ack")
    moments = sorted(chance.randrange(first, len(done) + 1) for _ in range(number))
    disk, at = Disk(), 0
    for moment in moments:
        while at < moment:
            disk.take(done[at])
            at += 1
        yield disk.after_power_loss(chance), list(disk.acknowledged)
