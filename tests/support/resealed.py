"""A recording in a file that somebody changed, its first line made to fit: so that only the replay can tell."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a recording."""
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]


def write_resealed(file: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Write the lines of a recording, with the number and the hash in the first that they have now."""
    first = lines[0] | {"events": len(lines) - 1, "sha256": ""}
    content = b"".join(msgspec.json.encode(line) + b"\n" for line in (first, *lines[1:]))
    first["sha256"] = hashlib.sha256(content).hexdigest()
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in (first, *lines[1:])))
