#!/usr/bin/env python3
"""Checks a bundle of events of an Intersession log, with nothing but the standard library of Python 3.8 or later.

    python3 verify.py BUNDLE.zip [--trust KEY] [--quorum N] [--published FILE] [--json]

BUNDLE is the zip, or the folder that it was unpacked into. --trust names the public key of the log's host (`ed25519:…`, or a
file of such lines), or a witness's (its vkey), --published a file of checkpoints that were published before, as lines or as
signed notes: get them by another way than the bundle.
It says OK, or what is wrong, and then what this does not prove. Exit code: 0 for OK, 1 for wrong, 2 where it can't be asked so.

Take this file from elsewhere than the bundle that you check: `intersession bundle --verifier verify.py` writes it. What it
checks has a section each: the archive, the manifest and its signature, the events, the log's checkpoints, the proof that the
events are part of the log, what was erased or withheld, and the copies: files, and the events in `log.db`.
docs/reference/bundle.md describes the format.
"""

from __future__ import annotations

import argparse
import base64
import heapq
import io
import json
import os
import re
import sqlite3
import stat
import struct
import sys
import tempfile
import uuid
import zlib
from array import array
from contextlib import closing
from functools import lru_cache
from hashlib import sha256, sha512
from pathlib import Path
from typing import BinaryIO, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple, Union, cast

FORMAT = "intersession bundle 1"
SIGNED = b"intersession bundle 1\n"  # stands before the manifest where that is signed
STATED = b"intersession checkpoint 1\n"  # stands before a checkpoint where that is hashed and signed
MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"

# Limits: what comes from elsewhere may be made to fill a disk or a memory.
MOST_ENTRIES = 100_000
MOST_BYTES = 2**32 - 1  # of an entry, unpacked
MOST_IN_ALL = 2**34  # of all entries, unpacked
MOST_IN_MEMORY = 2**28  # of an entry that is read as a whole, or of a line
MOST_SIGNATURES = 2_000  # of checkpoints: the last ones are checked, each of which stands for those before it
MOST_NOTES = 200  # of checkpoints whose signatures as notes are checked: the last ones
MOST_SHOWN = 50

Json = Union[None, bool, int, float, str, List["Json"], Dict[str, "Json"]]
Object = Dict[str, Json]
Place = Tuple[str, int]  # a stream and a version
HEX = re.compile(r"[0-9a-f]+")
# No other entries: what is unpacked beside `log.db` or `verify.py` may be read with them (`log.db-wal`, `json.py`).
NAME = re.compile(
    r"(answer|erasures|manifest|notes|proof|refusals|settings)\.json|(checkpoints|events|heads|questions)\.jsonl"
    r"|(README|checkpoints|keys)\.txt|log\.db|manifest\.sig|report\.html|run\.svg|verify\.py"
    r"|test_run_[A-Za-z0-9_]+\.(py|jsonl)|files/[0-9a-f]{64}|timestamps/[0-9]+\.tsr"
)


class Wrong(Exception):
    """Something is wrong, so that what follows from it can't be looked at; `code` is of what."""

    def __init__(self, code: str, problem: str) -> None:
        super().__init__(code, problem)
        self.code = code
        self.problem = problem


class Unusable(Exception):
    """The question can't be asked so."""


# --- Texts: JSON as it was written, and quoted values that do nothing to a terminal


def safe(value: object, most: int = 200) -> str:
    """Return a text without control characters, line ends and characters that turn the direction of writing, cut short."""
    text = value if isinstance(value, str) else repr(value)
    cut = text if len(text) <= most else text[:most] + "…"
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in cut)


def counted(count: int, thing: str) -> str:
    """Say how many there are of a thing."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _pairs(pairs: list[tuple[str, Json]]) -> Object:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field is there twice")
    return found


def _number(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError("a number has more digits than any that is written")
    return int(digits)


def _constant(name: str) -> Json:
    raise ValueError(f"{name} is no number in JSON")


_READ = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_number, parse_constant=_constant).decode
_WRITE = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_WRITE_SORTED = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode


def parsed(text: bytes) -> Json:
    """Return a JSON value, or raise ValueError; no field may be there twice."""
    try:
        value: Json = _READ(text.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def an_object(value: Json) -> Object:
    """Return an object, or raise ValueError."""
    if not isinstance(value, dict):
        raise ValueError(f"{safe(value, 40)} is no object")
    return value


def canonical(value: object) -> bytes:
    """Return JSON as RFC 8785 has it, for what is hashed: ASCII keys, whole numbers, texts."""
    return _WRITE_SORTED(value).encode()


def whole(value: object) -> int:
    """Return a whole number from 0, or raise ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError(f"{safe(value, 40)} is no whole number")
    return value


def is_hex(value: object, digits: int = 64) -> bool:
    """Whether it is lower-case hexadecimal of a length."""
    return isinstance(value, str) and len(value) == digits and HEX.fullmatch(value) is not None


def hashed(value: object) -> bytes:
    """Return a SHA-256 that is written in hexadecimal, or raise ValueError."""
    if not isinstance(value, str) or not is_hex(value):
        raise ValueError(f"{safe(value, 40)} is no SHA-256")
    return bytes.fromhex(value)


def listed(value: object) -> list[Json]:
    """Return a list, or raise ValueError."""
    if not isinstance(value, list):
        raise ValueError(f"{safe(value, 40)} is no list")
    return cast("List[Json]", value)


# --- Ed25519 (RFC 8032), to check signatures only: nothing here is secret, so it need not take the same time for all values

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)  # of -1
Point = Tuple[int, int, int, int]  # X, Y, Z and X·Y/Z


def _add(one: Point, other: Point) -> Point:
    a = (one[1] - one[0]) * (other[1] - other[0]) % _P
    b = (one[1] + one[0]) * (other[1] + other[0]) % _P
    c = 2 * one[3] * other[3] * _D % _P
    d = 2 * one[2] * other[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _double(one: Point) -> Point:
    a, b, c = one[0] * one[0], one[1] * one[1], 2 * one[2] * one[2]
    h = a + b
    e, g = h - (one[0] + one[1]) ** 2, a - b
    f = c + g
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


@lru_cache(maxsize=64)
def _point(text: bytes) -> Point | None:
    """Return the point of 32 bytes; None where there is none, or where they are not how it is written."""
    y = int.from_bytes(text, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= _P:
        return None
    u, v = (y * y - 1) % _P, (_D * y * y + 1) % _P
    x = u * v**3 * pow(u * v**7 % _P, (_P - 5) // 8, _P) % _P
    if (v * x * x - u) % _P:
        x = x * _ROOT % _P
    if (v * x * x - u) % _P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = _P - x
    return (x, y, 1, x * y % _P)


_BASE = _point((4 * pow(5, _P - 2, _P) % _P).to_bytes(32, "little"))


def has_signed(key: bytes, text: bytes, signature: bytes) -> bool:
    """Whether a signature of 64 bytes over a text was made by the key with these 32 bytes."""
    point = _point(key) if len(key) == 32 else None
    scalar = int.from_bytes(signature[32:], "little")
    if point is None or _BASE is None or len(signature) != 64 or scalar >= _ORDER:
        return False
    challenge = int.from_bytes(sha512(signature[:32] + key + text).digest(), "little") % _ORDER
    minus: Point = (_P - point[0], point[1], 1, _P - point[3])
    # scalar times the base, less challenge times the key, both in one pass over their bits.
    terms, found = (None, _BASE, minus, _add(_BASE, minus)), (0, 1, 1, 0)
    for bit in range(252, -1, -1):
        found = _double(found)
        term = terms[scalar >> bit & 1 | (challenge >> bit & 1) << 1]
        if term is not None:
            found = _add(found, term)
    inverse = pow(found[2], _P - 2, _P)
    x, y = found[0] * inverse % _P, found[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little") == signature[:32]


def unbase64(text: str, size: int) -> bytes:
    """Return what base64 says, if that is how it is written, and has that size; else nothing."""
    try:
        value = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        return b""
    return value if len(value) == size and base64.b64encode(value).decode() == text else b""


def key_id(key: bytes) -> str:
    """Return the id that checkpoints name a key by."""
    return sha256(key).hexdigest()[:16]


def keys_in(text: str) -> dict[str, bytes]:
    """Return the public keys of hosts in a text, by their ids: a line `ed25519:…` or a vkey each, or one key in PEM.

    Raises:
        ValueError: there is none, or something else.
    """
    if "-----BEGIN PUBLIC KEY-----" in text:
        inner = base64.b64decode("".join(text.split("-----")[2].split()))
        witnesses: set[bytes] = set()
        raw = [inner[12:]] if inner[:12] == bytes.fromhex("302a300506032b6570032100") else [b""]
    else:
        words = words_of(text)
        raw = [unbase64(word[8:], 32) for word in words if word[:8] == "ed25519:"]
        named = [vkey_of(word) for word in words if word[:8] != "ed25519:"]
        raw += [one.key for one in named]
        witnesses = {one.key for one in named if one.is_witness}
    if not all(raw) or not raw:
        raise ValueError("a public key is written as ed25519: and the base64 of its 32 bytes, or as a vkey")
    return {key_id(key): key for key in raw if key not in witnesses}


def words_of(text: str) -> list[str]:
    """Return the first word of each line that is no remark."""
    words = [line.split()[0] for line in text.splitlines() if line.strip()]
    return [word for word in words if word[0] != "#"]


# --- Signed notes, as C2SP has them: a text, and a line of a signature each below it


VKEY = re.compile(r"([^\s+]{1,200})\+([0-9a-f]{8})\+([A-Za-z0-9+/]{44})")
NOTE = re.compile(
    r"^([^\n]+\n[0-9]+\n[A-Za-z0-9+/]{43}=\n(?:[^\n]+\n)*)\n((?:\u2014 [^\n]+\n)+)", re.MULTILINE
)


class Vkey(NamedTuple):
    """A public key under a name. Four bytes of `hash` stand before its signatures, and in a witness's the time."""

    name: str
    hash: bytes
    key: bytes
    is_witness: bool


def vkey_of(word: str) -> Vkey:
    """Return the key of `name+hash+base64`, or raise ValueError."""
    found = VKEY.fullmatch(word)
    if found is None:
        raise ValueError(f"{safe(word)} is no public key: ed25519: and base64, or a vkey (name+hash+base64)")
    typed = base64.b64decode(found[3])
    name = sha256(f"{found[1]}\n".encode() + typed).digest()[:4]
    if name.hex() != found[2] or typed[0] not in {1, 4}:
        raise ValueError(f"the vkey of {found[1]} is not of its name and key, or of another kind")
    return Vkey(found[1], name, typed[1:], typed[0] == 4)


class Note(NamedTuple):
    """A signed note of a checkpoint: of which, its text, and its lines: a name, four bytes and a signature each."""

    of: Checkpoint
    text: bytes
    lines: list[tuple[str, bytes, bytes]]

    def is_signed_by(self, key: Vkey) -> bool:
        """Whether a key has signed it; ValueError where a line says so, and it did not."""
        found = [signature for name, of, signature in self.lines if (name, of) == (key.name, key.hash)]
        for one in found:
            text, signature = self.text, one
            if key.is_witness:
                time = int.from_bytes(one[:8], "big")
                text, signature = f"cosignature/v1\ntime {time}\n".encode() + text, one[8:]
            if not has_signed(key.key, text, signature):
                raise ValueError(f"the note of {self.of.named} was not signed by {safe(key.name)}")
        return bool(found)


def note_text(one: Checkpoint, origin: str) -> bytes:
    """Return the text that a checkpoint has as a note."""
    root = base64.b64encode(one.root).decode()
    return (
        f"{origin}\n{one.size}\n{root}\nintersession {one.said['logId']} {one.position} {one.hash}\n".encode()
    )


def signatures_in(text: str) -> list[tuple[str, bytes, bytes]]:
    """Return the signatures of lines, or raise ValueError."""
    found: list[tuple[str, bytes, bytes]] = []
    for line in text.splitlines():
        name, _, encoded = line[2:].partition(" ")
        raw = base64.b64decode(encoded.encode("ascii"), validate=True)
        if line[:2] != "\u2014 " or not name or len(raw) <= 4 or base64.b64encode(raw).decode() != encoded:
            raise ValueError(f"{safe(line)} is no line of a signature")
        found.append((name, raw[:4], raw[4:]))
    return found


def note_of(text: str, below: str) -> Note:
    """Return a note, or raise ValueError. What it says of its checkpoint is what it stands for."""
    _, size, root, *more = text.splitlines()
    for line in more:
        words = line.split(" ")
        if words[0] == "intersession" and len(words) == 4 and words[2].isdecimal() and is_hex(words[3]):
            said: Object = {"logId": words[1], "eventsRoot": base64.b64decode(root).hex()}
            of = Checkpoint(int(words[2]), int(size), words[3], b"", said)
            return Note(of, text.encode(), signatures_in(below))
    raise ValueError("a note does not say of which checkpoint it is")


def notes_in(text: str) -> list[Note]:
    """Return the notes of a file, or raise ValueError. What the next one begins with was cut while it was written."""
    found: list[Note] = []
    end, matches = 0, list(NOTE.finditer(text))
    for at, match in enumerate(matches):
        left, after = (
            text[end : match.start()].strip("\n"),
            matches[at + 1] if at + 1 < len(matches) else None,
        )
        if left and not match[0].startswith(left):
            raise ValueError(f"{safe(left)} is no signed note")
        end = match.end()
        if after is None or not after[0].startswith(match[1]):  # the next one may be the same, cosigned since
            found.append(note_of(match[1], match[2]))
    if not found or (text[end:].strip("\n") and text.endswith("\n")):
        raise ValueError("it holds something else than signed notes")
    return found


# --- Trees as RFC 6962 has them


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node over its two children."""
    return sha256(b"\1" + left + right).digest()


def root_by_path(index: int, size: int, leaf: bytes, path: Sequence[bytes]) -> bytes | None:
    """Return the root that a leaf's path leads to; None if the path does not fit (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return None
    at, last, root = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        if at & 1 or at == last:
            root = node_hash(sibling, root)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            root = node_hash(root, sibling)
        at, last = at >> 1, last >> 1
    return root if last == 0 else None


def is_beginning(old: int, old_root: bytes, new: int, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Whether a path proves the tree of `old` leaves to be the beginning of that of `new` (RFC 9162, 2.1.4.2)."""
    if old in (new, 0):
        return not path and old_root == (new_root if old else sha256().digest())
    if old > new:
        return False
    nodes = list(path)
    if not old & (old - 1):
        nodes.insert(0, old_root)
    if not nodes:
        return False
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first = second = nodes[0]
    for node in nodes[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            first, second = node_hash(node, first), node_hash(node, second)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            second = node_hash(second, node)
        at, last = at >> 1, last >> 1
    return last == 0 and first == old_root and second == new_root


Subtree = Tuple[int, int, bytes]
"""Leaves of a tree from one up to another, and the root over them."""


def root_over(size: int, parts: Iterable[Subtree]) -> bytes:
    """Return the root of a tree, of some of its leaves and the roots over the largest ranges of all others, in their order.

    Raises:
        ValueError: something is missing, or left over.
    """
    rest = iter(parts)
    here = next(rest, None)

    def over(start: int, stop: int) -> bytes:
        nonlocal here
        if here is not None and here[:2] == (start, stop):
            root, here = here[2], next(rest, None)
            return root
        if stop - start == 1:
            raise ValueError(f"leaf {start} is neither among the events nor in the proof")
        middle = start + (1 << (stop - start - 1).bit_length() - 1)
        return node_hash(over(start, middle), over(middle, stop))

    root = over(0, size) if size else sha256().digest()
    if here is not None:
        raise ValueError(f"the leaves from {here[0]} up to {here[1]} have no place in the tree")
    return root


# --- The archive: each byte of the zip belongs to an entry, and each entry is there once


class Part(NamedTuple):
    """An entry, as it lies in the zip, or as a file of the folder."""

    name: str
    size: int
    path: Path
    start: int = 0
    packed: int = 0
    method: int = -1  # 0 for stored and 8 for deflated, as zip has it; -1 for a file of a folder
    crc: int = 0

    def chunks(self) -> Iterator[bytes]:
        """Yield the content; raise Wrong where it is not as long as was said, or can't be unpacked."""
        with self.path.open("rb") as file:
            if self.method < 0:
                yield from iter(lambda: file.read(1 << 20), b"")
                return
            file.seek(self.start)
            size, crc = 0, 0
            for chunk in self._unpacked(file):
                size, crc = size + len(chunk), zlib.crc32(chunk, crc)
                if size > self.size:
                    break
                yield chunk
            if (size, crc) != (self.size, self.crc):
                raise Wrong("archive", f"{self.name} does not unpack to what the archive says")

    def _unpacked(self, file: BinaryIO) -> Iterator[bytes]:
        left, unpacking = self.packed, zlib.decompressobj(-15)
        while left:
            chunk = file.read(min(1 << 16, left))
            left -= len(chunk) or left
            if self.method == 0:
                yield chunk
                continue
            while chunk:
                try:
                    yield unpacking.decompress(chunk, 1 << 20)
                except zlib.error as error:
                    raise Wrong("archive", f"{self.name} can't be unpacked: {error}") from None
                chunk = unpacking.unconsumed_tail
        while self.method and not unpacking.eof:
            more = unpacking.decompress(b"", 1 << 20)
            if not more:
                raise Wrong("archive", f"{self.name} is cut short in the archive")
            yield more
        if unpacking.unused_data:
            raise Wrong("archive", f"{self.name} has more in the archive than belongs to it")

    def content(self) -> bytes:
        """Return the content of an entry that is read as a whole."""
        if self.size > MOST_IN_MEMORY:
            raise Wrong("archive", f"{self.name} has {self.size} bytes, more than {MOST_IN_MEMORY}")
        return b"".join(self.chunks())

    def object(self) -> Object:
        """Return the JSON object that it holds."""
        try:
            return an_object(parsed(self.content()))
        except ValueError as error:
            raise Wrong("entry", f"{self.name} is not to be read: {safe(str(error))}") from None

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, each of which ends with a line feed."""
        rest = b""
        for chunk in self.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
            if len(rest) > MOST_IN_MEMORY:
                raise Wrong("archive", f"{self.name} has a line of more than {MOST_IN_MEMORY} bytes")
        if rest:
            raise Wrong("entry", f"{self.name} does not end with a line feed: it was cut")

    @property
    def hash(self) -> str:
        """The SHA-256 of the content, in hexadecimal."""
        total = sha256()
        for chunk in self.chunks():
            total.update(chunk)
        return total.hexdigest()


def parts_of(path: Path) -> dict[str, Part]:
    """Return the entries of a bundle, in their order."""
    parts = dict(_parts_of_folder(path) if path.is_dir() else _parts_of_zip(path))
    if sum(part.size for part in parts.values()) > MOST_IN_ALL or len(parts) > MOST_ENTRIES:
        raise Wrong("archive", f"it has more than {MOST_ENTRIES} entries, or {MOST_IN_ALL} bytes")
    for name, part in parts.items():
        if not NAME.fullmatch(name):
            raise Wrong("archive", f"{safe(name)} is no entry of a bundle")
        if part.size > MOST_BYTES:
            raise Wrong("archive", f"{name} has more than {MOST_BYTES} bytes")
    return parts


def _parts_of_folder(folder: Path) -> Iterator[tuple[str, Part]]:
    for base, folders, files in os.walk(str(folder)):
        for name in sorted(folders + files):
            found = Path(base, name)
            inside, kind = found.relative_to(folder).as_posix(), found.lstat()
            if stat.S_ISREG(kind.st_mode):
                yield inside, Part(inside, kind.st_size, found)
            elif not stat.S_ISDIR(kind.st_mode):
                raise Wrong("archive", f"{safe(inside)} is neither a file nor a folder")


_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_END = struct.Struct("<4sHHHHIIH")
_COMMENT = len("sha256:") + 64
_IS_FILE = 0o600 << 16  # else it may be unpacked as a link


def _parts_of_zip(path: Path) -> Iterator[tuple[str, Part]]:
    """Yield the entries. They lie one behind the other without a byte between them; behind them the directory, the end, the comment."""
    end = path.stat().st_size - _END.size - _COMMENT
    with path.open("rb") as file:
        if end < 0 or file.read(4) != b"PK\3\4":
            raise Wrong("archive", "it is no bundle: that is a zip with a hash at its end")
        file.seek(0)
        total, left = sha256(), end
        while left:
            chunk = file.read(min(1 << 20, left))
            left -= len(chunk) or left
            total.update(chunk)
        tail = file.read()
        count, length, start = _END.unpack_from(tail)[4:7]
        said = _END.pack(b"PK\5\6", 0, 0, count, count, length, start, _COMMENT)
        if tail != said + b"sha256:" + total.hexdigest().encode() or start + length != end:
            raise Wrong("archive", "the zip is not as it was written: its end says another hash")
        file.seek(start)
        directory, at, reached = file.read(length), 0, 0
        seen: set[str] = set()
        for _ in range(count):
            if len(directory) < at + _CENTRAL.size:
                raise Wrong("archive", "the directory of the zip is cut short")
            mark, _, *fields, more, comment, disk, _, kind, offset = _CENTRAL.unpack_from(directory, at)
            _, flags, method, _, _, crc, packed, size, named = fields
            raw = directory[at + _CENTRAL.size : at + _CENTRAL.size + named]
            name, at = raw.decode("latin-1"), at + _CENTRAL.size + named
            if (
                (mark, more, comment, disk, kind, offset) != (b"PK\1\2", 0, 0, 0, _IS_FILE, reached)
                or flags
                or method not in {0, 8}
            ):
                raise Wrong("archive", f"the zip is not laid out as a bundle, at entry {safe(name)}")
            local = _LOCAL.pack(b"PK\3\4", *fields, 0) + raw
            file.seek(offset)
            if file.read(len(local)) != local or name in seen:
                raise Wrong("archive", f"entry {safe(name)} is there twice, or not what the directory says")
            seen.add(name)
            yield name, Part(name, size, path, offset + len(local), packed, method, crc)
            reached = offset + len(local) + packed
        if at != length or reached != start:
            raise Wrong("archive", "there are bytes in the zip that belong to no entry")


# --- Events and checkpoints, as they are written


def where(position: int, stream: str, version: int) -> str:
    """Return the place of an event, in words."""
    return f"#{position} ({safe(stream)}, version {version})"


class Row(NamedTuple):
    """An event. `leaf` is its place in the log's tree; `print` is a hash over all that log.db has of it."""

    position: int
    leaf: int | None
    stream: str
    version: int
    topic: str
    prev: str
    hash: str
    salt: str
    withheld: str
    print: bytes

    @property
    def where(self) -> str:
        """The place, in words."""
        return where(self.position, self.stream, self.version)


class Blank(NamedTuple):
    """An event without its words: `stands` is the hash of what is left of its data. Without its thinking alone, it is its digest."""

    position: int
    withheld: str
    stands: bytes
    is_thinking: bool = False


class Erasure(NamedTuple):
    """What an event says that is left of another one: `position` is its own."""

    position: int
    where: str
    stands: bytes
    is_thinking: bool


FIRST = "0" * 64
FIELDS = (
    "position", "index", "stream", "version", "topic", "id", "causation", "correlation", "epoch", "time", "prev", "hash", "digest",
)  # fmt: skip
OPTIONAL = ("salt", "decision", "apart", "withheld")
WITHHELD = {
    None: (),
    "secrets": ("secrets",),
    "words": ("words", "secrets"),
    "people": ("person",),
}  # by edition
FORKED, ERASED, TAKEN = "forked_from.1", "erased.1", "checkpoint_taken.1"
# What SQLite says of log.db's tables. Of the last two it has no rows: views are made when the log is opened.
TABLES = {
    "stored_events": "CREATE TABLE stored_events (rowid INTEGER PRIMARY KEY AUTOINCREMENT CHECK (rowid > 0), "
    "originator_id TEXT NOT NULL, originator_version INTEGER NOT NULL, topic TEXT NOT NULL, state BLOB NOT NULL, "
    "UNIQUE (originator_id, originator_version))",
    "sqlite_autoindex_stored_events_1": None,
    "sqlite_sequence": "CREATE TABLE sqlite_sequence(name,seq)",
    "log_identity": "CREATE TABLE log_identity (log_id TEXT NOT NULL, format INTEGER NOT NULL, epoch INTEGER NOT NULL, "
    "created_ms INTEGER NOT NULL)",
    "log_topics": "CREATE TABLE log_topics (topic TEXT PRIMARY KEY) WITHOUT ROWID",
    "inline_views": "CREATE TABLE inline_views (name TEXT PRIMARY KEY, shape INTEGER NOT NULL, "
    "position INTEGER NOT NULL) WITHOUT ROWID",
    "set_aside": "CREATE TABLE set_aside (view TEXT NOT NULL, position INTEGER NOT NULL, stream TEXT NOT NULL, "
    "version INTEGER NOT NULL, topic TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (view, position)) WITHOUT ROWID",
}


def row_of(line: bytes) -> tuple[Row, Object, bytes]:
    """Return the row of a line, its fields, and its data as they are there; raise ValueError where it is not written as rows are."""
    head, _, rest = line.partition(b',"data":')
    said, data = an_object(parsed(head + b"}")), rest[:-1]
    optional = tuple(name for name in OPTIONAL if name in said)
    if rest[-1:] != b"}" or tuple(said) != FIELDS + optional or any(said[name] == "" for name in optional):
        raise ValueError("it has not the fields of an event, in their order")
    if _WRITE(said).encode() != head + b"}":
        raise ValueError("it is not written as events are")
    texts = [name for name in optional if name != "apart"]
    for name in ("stream", "topic", "id", "prev", "hash", "digest", "causation", "correlation", *texts):
        absent = {"causation", "correlation", *(["digest"] if said.get("withheld") == "person" else [])}
        if not isinstance(said[name], str) and (said[name] is not None or name not in absent):
            raise ValueError(f"its {name} is no text")
    for name in ("epoch", "time"):
        whole(said[name])
    hashed(said["hash"])
    row = Row(
        position=whole(said["position"]),
        leaf=None if said["index"] is None else whole(said["index"]),
        stream=str(said["stream"]),
        version=whole(said["version"]),
        topic=str(said["topic"]),
        prev=str(said["prev"]),
        hash=str(said["hash"]),
        salt=str(said.get("salt", "")),
        withheld=str(said.get("withheld", "")),
        print=printed(head[head.index(b'"stream":') :].partition(b',"withheld":')[0], data),
    )
    if row.withheld and row.salt:
        raise ValueError("what it withholds could be guessed: its salt is there")
    an_object(parsed(data))
    return row, said, data


def printed(fields: bytes, data: bytes) -> bytes:
    """Return a hash over all that a log has of an event: its fields, as they stand in a line, and its data."""
    return sha256(fields + b"\n" + data).digest()


def hash_of(said: Object, log_id: str) -> str:
    """Return the hash of an event of a log: over its envelope, with the digest in the place of its data."""
    envelope = {
        name: said[name]
        for name in ("causation", "correlation", "epoch", "prev", "stream", "topic", "version")
    }
    envelope.update(eventId=said["id"], logId=log_id, payloadDigest=said["digest"], timeMs=said["time"])
    if said.get("decision"):
        envelope["decision"] = said["decision"]
    return sha256(canonical(envelope)).hexdigest()


_APART = re.compile(rb'\{"apart":\["([0-9a-f]{64})"\]')


def lacks_thinking(said: Object, data: bytes) -> bool:
    """Whether thinking that was hashed is not beside the data any more; raise ValueError where it is there, and was changed."""
    digests = [found.decode() for found in _APART.findall(data)]
    if "apart" not in said:
        return bool(digests) and bool(said.get("salt"))
    apart = an_object(said["apart"])
    pieces = [str(piece).encode() for piece in listed(apart["pieces"])]
    if (
        [*apart] != ["pieces", "salt"]
        or not pieces
        or [digest_of(apart["salt"], one) for one in pieces] != digests
    ):
        raise ValueError("the thinking beside its data is not what was hashed: it was changed")
    return False


def digest_of(salt: object, data: bytes) -> str:
    """Return the digest of an event's data."""
    return sha256(bytes.fromhex(str(salt)) + data).hexdigest() if is_hex(salt, 32) else ""


_PLACES = struct.Struct(">c32s32s16s16s16s16sI13s4s")


def of_state(state: bytes) -> tuple[Object, bytes]:
    """Return the fields of an event as a log stores it, and its data: bytes in fixed places, or JSON (docs/howto/read-the-log.md)."""
    said: Object
    if state[:1] == b"{":
        said = an_object(parsed(state))
        behind = b',"decision":' if "decision" in said else b',"digest":'
        return said, state.partition(b'"data":')[2].rpartition(behind)[0]
    if len(state) <= _PLACES.size or state[:1] != b"\1":
        raise ValueError("a state of an event begins otherwise")
    _, own, prev, salt, name, cause, chain, epoch, time, length = _PLACES.unpack_from(state)
    end = _PLACES.size + int(length)
    said = {"hash": own.hex(), "prev": prev.hex(), "salt": salt.hex(), "epoch": epoch, "time": int(time)}
    for field, value in (("id", name), ("causation", cause), ("correlation", chain)):
        said[field] = str(uuid.UUID(bytes=value)) if any(value) else None
    said.update(decision=state[_PLACES.size : end].decode(), digest=sha256(salt + state[end:]).hexdigest())
    return said, state[end:]


def _written(said: Object) -> bytes:
    """Return the fields of an event in log.db as they stand in a line of events.jsonl."""
    more = {name: said[name] for name in ("salt", "decision", "apart") if said.get(name)}
    return _WRITE({**{name: said[name] for name in FIELDS[2:]}, **more})[1:-1].encode()


def _stored(log: sqlite3.Connection, first: int, last: int) -> Iterator[tuple[int, Object, bytes]]:
    """Yield the position, the fields and the data of events in log.db."""
    for at, stream, version, topic, state in log.execute(
        "SELECT rowid, originator_id, originator_version, topic, state FROM stored_events "
        "WHERE rowid BETWEEN ? AND ? ORDER BY rowid",
        (first, last),
    ):
        said, data = of_state(state)
        yield at, {**said, "stream": stream, "version": whole(version), "topic": topic}, data


class Checkpoint(NamedTuple):
    """What the log of `size` events was up to a position. `said` has its fields as they are published, `hash` is over `text`, and so is its signature."""

    position: int
    size: int
    hash: str
    text: bytes
    said: Object

    @property
    def root(self) -> bytes:
        """The root of the tree over all events up to its position."""
        return hashed(self.said["eventsRoot"])

    @property
    def named(self) -> str:
        """What it is, in words."""
        return f"the checkpoint of #{self.position}"


STATEMENT = ("count", "eventsRoot", "headsRoot", "logId", "position", "previous", "rolling", "streams", "unsaid")  # fmt: skip


def checkpoint_of(value: Json) -> Checkpoint:
    """Return a checkpoint as it is published, or raise ValueError."""
    said = an_object(value)
    if not set(said) <= {*STATEMENT, "keyId", "signature", "note"}:
        raise ValueError("it has other fields than a checkpoint")
    for name in ("eventsRoot", "rolling", "headsRoot", "previous", "unsaid"):
        if said.get(name) is not None or name in {"eventsRoot", "rolling"}:
            hashed(said.get(name))
    text = STATED + canonical({name: said.get(name) for name in STATEMENT})
    return Checkpoint(
        whole(said.get("position")), whole(said.get("count")), sha256(text).hexdigest(), text, said
    )


def published_in(text: bytes) -> list[Checkpoint]:
    """Return the checkpoints of a published file, or raise ValueError. A line that was cut while it was written is passed over."""
    try:
        return [checkpoint_of(parsed(text))]  # a single one may be in any layout
    except ValueError:
        lines = text.split(b"\n")
    if text.strip() and not text.lstrip().startswith(b"{"):
        return [one.of for one in notes_in(text.decode())]
    found: list[Checkpoint] = []
    for line, after in zip(lines, lines[1:]):
        if line.strip() and not after.startswith(line[:-1] or b"\n"):
            found.append(checkpoint_of(parsed(line)))
    if not found:
        raise ValueError("it holds no checkpoint")
    return found


# --- The check itself, step by step; `wrong` has codes and sentences, `unproven` sentences


class Check:
    """A bundle that is checked. `said` is what it is, and what was proven of it, for programs."""

    def __init__(
        self,
        path: Path,
        trusted: dict[str, bytes] | None = None,
        published: Sequence[Checkpoint] = (),
        witnesses: Sequence[Vkey] = (),
        quorum: int = 0,
    ) -> None:
        self.path, self.trusted, self.published = path, trusted or {}, published
        self.witnesses = list({one.key: one for one in witnesses}.values())
        self.quorum = quorum or len(self.witnesses)
        self.signed_by_witnesses: dict[str, int] = {}  # by how many, where they are as many as the quorum
        self.wrong: list[tuple[str, str]] = []
        self.unproven: list[str] = []
        self.said: Object = {"bundle": str(path)}
        self.parts: dict[str, Part] = {}
        # Of each event, in their order: its position, its leaf (-1 for none), its hash and its print, of 32 bytes each.
        self.positions, self.leaves = array("q"), array("q")
        self.hashes, self.prints = bytearray(), bytearray()
        # Of each stream the version and the hash of its last event, and of the last one with a place in the log's tree.
        self.ends: dict[str, tuple[int, str]] = {}
        self.proven_ends: dict[str, tuple[int, str]] = {}
        # Up to which position events are hashed as those of another log.
        self.forks: list[tuple[int, str]] = []
        self.erased: dict[Place, Erasure] = {}
        self.blank: dict[Place, Blank] = {}
        self.kinds = {"words": 0, "secrets": 0, "person": 0}
        self.recorded: list[tuple[str, Object]] = []  # checkpoints, as the log itself has them
        self.files: set[str] = set()  # that events name
        self.taken: list[Checkpoint] = []
        self.signed: dict[str, str] = {}  # by which key each of them is, as far as that could be checked
        self.proven: dict[str, Checkpoint] = {}  # that the events here are those of
        # What was erased behind the place of the bundle, as its log.db says.
        self.later: dict[Place, bytes] = {}

    def run(self) -> Check:
        """Check all of it."""
        try:
            self.parts = parts_of(self.path)
            self.check_manifest()
            self.read_events()
            self.read_checkpoints()
            self.check_proof()
            up_to = self.check_trust()
            self.check_log()
            self.check_erased(up_to)
            self.check_files()
            self.leave_the_rest()
        except Wrong as wrong:
            self.find(wrong.code, wrong.problem)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self.find("entry", f"a part of it is not written as bundles have it: {safe(str(error))}")
        except OSError as error:
            raise Unusable(f"{self.path} can't be read: {error.strerror or error}") from None
        return self

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong

    def find(self, code: str, problem: str) -> None:
        """Note that something is wrong."""
        self.wrong.append((code, problem))

    def leave(self, sentence: str) -> None:
        """Note what is not proven."""
        self.unproven.append(sentence)

    def part(self, name: str) -> Part:
        """Return an entry that a bundle has to have."""
        if name not in self.parts:
            raise Wrong("entry", f"{name} is missing")
        return self.parts[name]

    def check_manifest(self) -> None:
        """The entries are those of the manifest, with their hashes; and who signed that."""
        text, manifest = self.part(MANIFEST).content(), self.part(MANIFEST).object()
        if manifest.get("format") != FORMAT:
            raise Wrong(
                "manifest",
                f"its format is {safe(manifest.get('format'))}; this verify.py checks {FORMAT}: take the newer one",
            )
        if manifest["redacted"] not in [*WITHHELD]:
            raise Wrong("manifest", f"{safe(manifest['redacted'])} is nothing that an edition withholds")
        self.log_id, self.position = str(manifest["logId"]), whole(manifest["position"])
        redacted = manifest["redacted"]
        self.manifest, self.redacted = manifest, None if redacted is None else str(redacted)
        self.said.update(
            {
                name: manifest[name]
                for name in ("logId", "position", "question", "redacted", "events", "streams")
            }
        )
        files = [an_object(one) for one in listed(manifest["files"])]
        names = [str(one["name"]) for one in files]
        for name in [one for one in self.parts if one not in {MANIFEST, SIGNATURE, *names}]:
            self.find("entry", f"{name} is not in the manifest: it was put in")
        if len(set(names)) != len(names):
            self.find("manifest", "it names an entry twice")
        for name, one in zip(names, files):
            part = self.parts.get(name)
            if part is None:
                self.find("entry", f"{safe(name)} is missing: it was taken out")
            elif (part.size, part.hash) != (one.get("bytes"), one.get("sha256")):
                self.find("entry", f"{name} is not what the manifest says: it was changed")
        self.said["signedBy"] = self._signer(text, manifest.get("key"))

    def _signer(self, text: bytes, said: Json) -> str | None:
        if said is None:
            if SIGNATURE in self.parts:
                self.find("signature", "there is a signature, and the manifest names no key")
            elif self.trusted:
                self.find("signature", "the bundle is not signed: ask for one that is, or leave --trust out")
            else:
                self.leave("That the host made this bundle, and what is beside its events: it is not signed.")
            return None
        ((name, key),) = keys_in(str(said)).items()
        line = self.part(SIGNATURE).content().decode("latin-1")
        if not has_signed(key, SIGNED + text, unbase64(line[:-1] if line[-1:] == "\n" else line, 64)):
            self.find("signature", f"{SIGNATURE} is no signature of the manifest by the key {name}")
        elif not self.trusted:
            self.leave(f"That the host made this bundle, whose key is {name}: --trust would show it.")
        elif name not in self.trusted:
            self.find("signature", f"the bundle is signed by the key {name}, which is not trusted")
        return name

    def log_id_at(self, position: int) -> str:
        """Return the id of the log that an event was written in: a fork begins as a part of another log."""
        found = self.log_id
        for cut, log_id in sorted(self.forks, reverse=True):
            if position > cut:
                break
            found = log_id
        return found

    def read_events(self) -> None:
        """Each row hashes to what it says, and follows the one before it in its stream."""
        part = self.part("events.jsonl")
        for line in part.lines():
            if b'"topic":"forked_from.1"' in line or b'"topic":"erased.1"' in line:
                self._rest_on(an_object(parsed(line)))
        last, leaf = 0, -1
        for number, line in enumerate(part.lines(), 1):
            try:
                row, fields, data = row_of(line)
                problem = self._problem(row, fields, data)
                self._note(row, fields, data)
            except ValueError as error:
                self.find("row", f"line {number} of events.jsonl is no event: {safe(str(error))}")
                continue
            if problem:
                self.find("row", f"{row.where}: {problem}")
            if not last < row.position <= self.position or not (
                row.leaf is None or leaf < row.leaf < row.position
            ):
                self.find("order", f"{row.where}: its place is not behind #{last}, up to #{self.position}")
            last, leaf = max(last, row.position), leaf if row.leaf is None else row.leaf
            self._follow(row)
        if (len(self.positions), len(self.ends)) != (self.manifest["events"], self.manifest["streams"]):
            self.find(
                "order",
                f"events.jsonl has {len(self.positions)} events of {len(self.ends)} streams, and the manifest says otherwise",
            )

    def _rest_on(self, said: Object) -> None:
        """Take down what others rest on: where a fork began, and which words were erased. That it is true is checked with all rows."""
        if said.get("topic") == FORKED:
            of = an_object(said["data"])
            self.forks.append((whole(of["position"]), str(of["logId"])))
        elif said.get("topic") == ERASED and said.get("withheld") != "person":
            position, stream, of = whole(said["position"]), str(said["stream"]), an_object(said["data"])
            here = where(position, stream, whole(said["version"]))
            if stream != f"erased:{of.get('stream')}" or "withheld" in said:
                self.find("erased", f"{here}: it authorises nothing: withheld, or not in the stream for that")
                return
            for version, stands in map(listed, listed(of.get("rows"))):
                place = str(of["stream"]), whole(version)
                self.erased[place] = Erasure(position, here, hashed(stands), of.get("thinking") is True)

    def _problem(self, row: Row, said: Object, data: bytes) -> str:
        """Say what of a row is not as it was hashed. Of one that hides a person only the hash can be proven, by its place."""
        if row.withheld and row.withheld not in WITHHELD[self.redacted]:
            return f"it withholds {safe(row.withheld)}, which its edition does not"
        if row.withheld == "person":
            return ""
        if row.salt and digest_of(row.salt, data) != said["digest"]:
            return "its data is not what was hashed: it was changed"
        if hash_of(said, self.log_id_at(row.position)) != row.hash:
            return "its hash is another one: a field was changed"
        return ""

    def _follow(self, row: Row) -> None:
        """Of stream `log` there are single events, those that others rest on; of all others, each from the first on."""
        version, before = self.ends.get(row.stream, (0, FIRST))
        if row.version > version + 1 and row.stream != "log":
            self.find("chain", f"{row.where}: what stands before it in its stream is not here")
        elif row.version <= version:
            self.find("chain", f"{row.where}: it comes behind version {version} of its stream")
        elif row.version == version + 1 and row.prev != before:
            self.find("chain", f"{row.where}: it does not follow the event before it in its stream")
        self.ends[row.stream] = row.version, row.hash
        if row.leaf is not None:
            self.proven_ends[row.stream] = self.ends[row.stream]
        self.positions.append(row.position)
        self.leaves.append(-1 if row.leaf is None else row.leaf)
        self.hashes += bytes.fromhex(row.hash)
        self.prints += row.print

    def _note(self, row: Row, said: Object, data: bytes) -> None:
        place = row.stream, row.version
        if row.withheld in self.kinds:
            self.kinds[row.withheld] += 1
        if row.topic == TAKEN and not row.withheld and self.log_id_at(row.position) == self.log_id:
            self.recorded.append((row.where, an_object(parsed(data))))
        if b'"type":"file"' in data:
            self.files.update(_files_in(parsed(data)))
        if not row.salt and row.withheld != "person":
            self.blank[place] = Blank(row.position, row.withheld, sha256(data).digest())
        elif lacks_thinking(said, data):
            self.blank[place] = Blank(row.position, "", hashed(said["digest"]), is_thinking=True)
        elif row.salt and place in self.erased:
            by = self.erased[place].where
            self.find("erased", f"{by} says that words of {row.where} were erased, and they are there")

    def read_checkpoints(self) -> None:
        """Each follows the one before it, and was signed by the key that it names."""
        for line in self.part("checkpoints.jsonl").lines():
            self.taken.append(checkpoint_of(parsed(line)))
        previous, position, count = None, 0, 0
        for one in self.taken:
            follows = one.position > position and one.size >= count and one.said.get("previous") == previous
            if not follows or one.said.get("logId") != self.log_id:
                self.find("checkpoint", f"{one.named} does not follow the one before it")
            previous, position, count = one.hash, one.position, one.size
        here = {one.position: {**one.said, "logId": None} for one in self.taken}
        for place, said in self.recorded:
            own = {**said, "logId": None}
            own.pop("peaks", None)
            if whole(said.get("position")) <= position and here.get(whole(said["position"])) != own:
                self.find("checkpoint", f"{place}: checkpoints.jsonl has another checkpoint, or none")
        given = [self.parts["keys.txt"].content().decode()] if "keys.txt" in self.parts else []
        given += [str(self.manifest["key"])] if self.manifest.get("key") else []
        keys = {**self.trusted}
        for text in given:
            keys.update(keys_in(text) if text.strip() else {})
        for one in self.taken[-MOST_SIGNATURES:]:
            name = one.said.get("keyId")
            key = keys.get(str(name))
            if key is None:
                if name is not None:
                    self.signed[one.hash] = ""
            elif has_signed(key, one.text, unbase64(str(one.said.get("signature")), 64)):
                self.signed[one.hash] = str(name)
            else:
                self.find("checkpoint", f"{one.named} was not signed by the key {safe(name)}")
        self.check_notes(keys)
        if "" in self.signed.values():
            self.leave("That checkpoints are signed by keys that are neither in keys.txt nor trusted.")

    def check_notes(self, keys: dict[str, bytes]) -> None:
        """Checkpoints are signed as notes, too; each note is of one of them, and cosigned by whom it says."""
        here = {one.hash: one for one in self.taken}
        for one in [each for each in self.taken if each.said.get("note") is not None][-MOST_NOTES:]:
            key = keys.get(str(one.said.get("keyId")))
            for name, hashed_name, signature in signatures_in(str(one.said["note"])):
                known = sha256(f"{name}\n\x01".encode() + (key or b"")).digest()[:4]
                if key and (hashed_name != known or not has_signed(key, note_text(one, name), signature)):
                    self.find("note", f"{one.named} was not signed as a note by its key")
        notes = (
            notes_in(self.parts["checkpoints.txt"].content().decode())
            if "checkpoints.txt" in self.parts
            else []
        )
        for note in notes:
            of = here.get(note.of.hash)
            if of is None or note.text != note_text(of, note.text.decode().partition("\n")[0]):
                self.find("note", f"checkpoints.jsonl has not what a note says of {note.of.named}")
        for note in notes[-MOST_NOTES:]:
            try:
                cosigned = sum(note.is_signed_by(one) for one in self.witnesses)
            except ValueError as error:
                self.find("note", str(error))
                continue
            if note.of.hash in here and self.witnesses and cosigned >= self.quorum:
                self.signed_by_witnesses[note.of.hash] = cosigned
        for name, part in self.parts.items():
            if name[:11] == "timestamps/":
                stamped = [one for one in self.taken if f"timestamps/{one.position}.tsr" == name]
                if not stamped or bytes.fromhex(stamped[0].hash) not in part.content():
                    self.find("note", f"{name} is no timestamp of a checkpoint that is here")
                else:
                    self.leave(
                        f"When {stamped[0].named} was taken: `openssl ts -verify -digest {stamped[0].hash} -in {name} "
                        "-CAfile …` says whether an authority signed that."
                    )

    def check_proof(self) -> None:
        """Every event, with its place, is part of the log, by its last checkpoint; and no event of a stream was left out."""
        proof, known = self.part("proof.json").object(), {one.hash for one in self.taken}
        behind = self.leaves.count(-1)
        self.said.update(checkpoint=None, proven=len(self.leaves) - behind)
        if proof.get("checkpoint") is None:
            if known or self.manifest.get("checkpoint") is not None or behind < len(self.leaves):
                self.find("proof", "proof.json proves nothing, though there are checkpoints")
            self.leave("That the events are the log's, and none is left out: no checkpoint covers them.")
            return
        last = checkpoint_of(proof["checkpoint"])
        self.said["checkpoint"] = {"position": last.position, "hash": last.hash}
        if self.manifest.get("checkpoint") != last.hash or last.hash not in known:
            self.find("proof", "its checkpoint is not that of the manifest, or not in checkpoints.jsonl")
        for position, leaf in zip(self.positions, self.leaves):
            if (leaf < 0) != (position > last.position):
                self.find("proof", f"#{position}: it has a leaf if {last.named} covers it, and only then")
        nodes = sorted(
            (whole(start), whole(stop), hashed(node))
            for start, stop, node in map(listed, listed(proof["nodes"]))
        )
        leaves = (
            (leaf, leaf + 1, leaf_hash(self._line(at))) for at, leaf in enumerate(self.leaves) if leaf >= 0
        )
        try:
            is_root = root_over(last.size, heapq.merge(nodes, leaves)) == last.root
        except ValueError as error:
            raise Wrong("proof", f"proof.json does not lead to {last.named}: {error}") from None
        if not is_root:
            raise Wrong(
                "proof",
                f"the events do not lead to {last.named}: some are not of the log, or not in their place",
            )
        self.proven[last.hash] = last
        for said in map(an_object, listed(proof["growth"])):
            one, until = checkpoint_of(said["since"]), checkpoint_of(said["checkpoint"])
            path = [hashed(node) for node in listed(said["path"])]
            if (
                until.hash != last.hash
                or one.hash not in known
                or not is_beginning(one.size, one.root, last.size, last.root, path)
            ):
                self.find("growth", f"{one.named} is not proven to be the beginning of the last")
            else:
                self.proven[one.hash] = one
        if nodes or "heads.jsonl" in self.parts:
            self._check_heads(last)
        if not nodes:
            self._make_anew(last)
        if behind or self.position > last.position:
            self.leave(
                f"That the log has nothing behind #{last.position}, the last checkpoint"
                + (f", but {counted(behind, 'event')}." if behind else ".")
            )
        if len(self.proven) < len(self.taken):
            self.leave(f"That the log only grew since {len(self.taken) - len(self.proven)} checkpoints.")

    def _line(self, at: int) -> bytes:
        """Return what the leaf of an event is made of."""
        return f"{self.positions[at]} {self.hashes[32 * at : 32 * at + 32].hex()}\n".encode()

    def _check_heads(self, last: Checkpoint) -> None:
        wanted = {stream for stream in self.proven_ends if stream != "log"}
        for line in self.parts["heads.jsonl"].lines() if "heads.jsonl" in self.parts else ():
            said = an_object(parsed(line))
            stream, version, path = str(said["stream"]), whole(said["version"]), an_object(said["path"])
            leaf = leaf_hash(canonical({"hash": said["hash"], "stream": stream, "version": version}))
            part = root_by_path(
                whole(path["index"]), whole(path["size"]), leaf, [hashed(one) for one in listed(path["part"])]
            )
            number = int.from_bytes(sha256(stream.encode()).digest()[:2], "big")
            root = root_by_path(
                number, 1 << 16, leaf_hash(part or b""), [hashed(one) for one in listed(path["parts"])]
            )
            end = self.proven_ends.get(stream, (0, FIRST))
            if part is None or root is None or root.hex() != last.said.get("headsRoot"):
                self.find("head", f"what is said of the end of {safe(stream)} does not lead to {last.named}")
            elif end != (version, said["hash"]):
                if last.position > self.position and version > end[0]:
                    self.leave(f"That {safe(stream)} had no more events before #{self.position}.")
                else:
                    self.find("head", f"events of {safe(stream)} up to version {version} were left out")
            wanted.discard(stream)
        if wanted and (last.said.get("headsRoot") is None or self.redacted == "people"):
            self.leave(f"That no end of {counted(len(wanted), 'stream')} was left out.")
        elif wanted:
            self.find("head", f"no proof says how {safe(', '.join(sorted(wanted)[:5]))} ended")

    def _make_anew(self, last: Checkpoint) -> None:
        """All events of the log are here: make each checkpoint anew."""
        peaks: list[tuple[int, bytes]] = []
        count = 0
        for one in self.taken:
            rolling = sha256()
            while count < len(self.positions) and self.positions[count] <= one.position:
                rolling.update(self._line(count))
                peaks.append((1, leaf_hash(self._line(count))))
                count += 1
                while len(peaks) > 1 and peaks[-2][0] == peaks[-1][0]:
                    size, right = peaks.pop()
                    peaks[-1] = (2 * size, node_hash(peaks[-1][1], right))
            root = peaks[-1][1] if peaks else sha256().digest()
            for _, peak in peaks[-2::-1]:
                root = node_hash(peak, root)
            if (one.size, one.root, one.said["rolling"]) != (count, root, rolling.hexdigest()):
                self.find("checkpoint", f"{one.named} was not taken of the events up to there")
            elif one.position <= last.position:
                self.proven[one.hash] = one

    def check_trust(self) -> int:
        """Return up to which position the events are proven against whoever can hash: by signatures, and by what was published."""
        here = {one.position: one.hash for one in self.taken}
        signed = max(
            (one.position for one in self.proven.values() if self.signed.get(one.hash) in self.trusted),
            default=0,
        )
        published = 0
        for one in self.published:
            if one.said.get("logId") != self.log_id:
                continue
            if here.get(one.position, one.hash if one.position > max(here, default=0) else "") != one.hash:
                self.find("published", f"{one.named} was published, and is not here as it was")
            elif one.hash in self.proven:
                of = self.proven[one.hash]
                if (one.size, one.root) != (of.size, of.root):
                    self.find("published", f"{one.named} was published as a note of something else")
                published = max(published, one.position)
        if self.published and not any(one.said.get("logId") == self.log_id for one in self.published):
            self.find("published", f"what was published is of {safe(self.published[0].said.get('logId'))}")
        cosigned = max(
            (one.position for one in self.proven.values() if one.hash in self.signed_by_witnesses), default=0
        )
        self.said.update(cosignedUpTo=min(cosigned, self.position))
        if self.witnesses and not cosigned:
            self.find(
                "unsigned",
                f"no checkpoint that proves these events is cosigned by {self.quorum} of the trusted witnesses "
                f"({', '.join(safe(one.name) for one in self.witnesses)})",
            )
        if self.trusted and not signed:
            self.find(
                "unsigned", f"no checkpoint that proves these events is signed by {' or '.join(self.trusted)}"
            )
        self.said.update(signedUpTo=min(signed, self.position), publishedUpTo=min(published, self.position))
        up_to, covered = (
            max(signed, published, cosigned),
            max((one.position for one in self.proven.values()), default=0),
        )
        if not self.trusted and not self.published and not self.witnesses:
            self.leave(
                "That nobody with the means to compute hashes made it up: give --trust or --published."
            )
        elif not up_to:
            self.leave("That nobody made it all up: nothing trusted or published covers these events.")
        elif up_to < covered:
            self.leave(f"That nobody made up what lies behind #{up_to}: nothing trusted covers it.")
        if self.trusted and max(published, cosigned) < covered:
            behind = f" behind #{max(published, cosigned)}" if max(published, cosigned) else ""
            self.leave(f"That the owner of the key signed no other history{behind}: give --published.")
        # Genuine checkpoints may stand before one that was forged with the key: no proof leads from the last of them to that.
        kept = {one.hash for one in self.published}
        for what, hashes in (
            ("published", kept),
            ("signed by a trusted key", {name for name, by in self.signed.items() if by in self.trusted}),
            ("cosigned", set(self.signed_by_witnesses)),
        ):
            last = [one for one in self.taken if one.hash in hashes][-1:]
            if last and self.proven and last[0].hash not in self.proven:
                self.find("growth", f"{last[0].named} is {what}, and is not proven to lead here")
        return up_to

    def check_log(self) -> None:
        """The events of log.db are those of events.jsonl, and behind them those that name its source."""
        if self.redacted == "people":
            if "log.db" in self.parts:
                self.find("log", "log.db is there, and of an edition without people none can be proven")
            return
        with tempfile.TemporaryDirectory(prefix="intersession-verify-") as folder:
            path = Path(folder, "log.db")
            with path.open("wb") as file:
                for chunk in self.part("log.db").chunks():
                    file.write(chunk)
            try:
                with closing(sqlite3.connect(path.as_uri() + "?mode=ro&immutable=1", uri=True)) as log:
                    log.execute("PRAGMA trusted_schema=OFF")  # it is data: nothing in its schema may run
                    if self._is_a_log(log):
                        self._compare(log)
                        self._check_own(log)
            except (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError) as error:
                raise Wrong("log", f"log.db is not to be read: {safe(str(error))}") from None

    def _is_a_log(self, log: sqlite3.Connection) -> bool:
        """Whether its tables are those of a log. What else is there a program would read in place of events when it opens the log."""
        found: dict[str, str | None] = dict(log.execute("SELECT name, sql FROM sqlite_master"))
        for name in sorted({*found, *TABLES}):
            if found.get(name, "") != TABLES.get(name, ""):
                self.find("log", f"log.db has {safe(name)} otherwise than bundles have it, or not at all")
        if found != TABLES:
            return False
        if any(log.execute("SELECT 1 FROM inline_views UNION ALL SELECT 1 FROM set_aside LIMIT 1")):
            self.find("log", "log.db has views in it, which no bundle has")
        # An index that is not as its table hides events from a program that reads streams by it, and so do kinds that are not listed.
        ((problem,),) = log.execute("PRAGMA integrity_check(1)")
        if problem != "ok":
            self.find("log", f"log.db is damaged: {safe(problem)}")
        if any(log.execute("SELECT topic FROM stored_events EXCEPT SELECT topic FROM log_topics")):
            self.find("log", "log.db has events of kinds that it does not list")
        return True

    def _compare(self, log: sqlite3.Connection) -> None:
        at = same = 0
        for position, said, data in _stored(log, -(2**63), self.position):
            same += 1
            while at < len(self.positions) and self.positions[at] < position:
                at += 1
            is_here = at < len(self.positions) and self.positions[at] == position
            if not is_here or printed(_written(said), data) != bytes(self.prints[32 * at : 32 * at + 32]):
                self.find("log", f"#{position} of log.db is not what events.jsonl has there")
        if same != len(self.positions):
            self.find("log", f"log.db has {same} of the {len(self.positions)} events of events.jsonl")

    def _check_own(self, log: sqlite3.Connection) -> None:
        """Events of its own say what log.db is a part of, and which words are not in it, and nothing else."""
        ((log_id,),) = log.execute("SELECT log_id FROM log_identity")
        ends, number = {**self.ends}, 0
        for position, said, data in _stored(log, self.position + 1, 2**63 - 1):
            named, number = f"#{position} of log.db, an event of its own,", number + 1
            stream, told = str(said["stream"]), an_object(parsed(data))
            version, before = ends.get(stream, (0, FIRST))
            if digest_of(said["salt"], data) != said["digest"] or hash_of(said, log_id) != said["hash"]:
                self.find("log", f"{named} is not as it was written")
            if (said["version"], said["prev"]) != (version + 1, before):
                self.find("log", f"{named} does not follow the one before it in its stream")
            ends[stream] = version + 1, str(said["hash"])
            if number == 1:
                of = (told.get("logId"), told.get("position"), said["topic"], stream)
                if of != (self.log_id_at(self.position), self.position, FORKED, "log"):
                    self.find("log", f"{named} does not say of which log this is a part")
            elif (said["topic"], stream) != (ERASED, f"erased:{told.get('stream')}"):
                self.find("log", f"{named} says something else than which words are not here")
            else:
                self._take_later(named, told)
        if (log_id == self.log_id) == (number > 0):
            self.find("log", f"log.db is of {safe(log_id)}, with {counted(number, 'event')} of its own")

    def _take_later(self, named: str, told: Object) -> None:
        for version, stands in map(listed, listed(told.get("rows"))):
            place = str(told["stream"]), whole(version)
            if place not in self.blank:
                self.find("log", f"{named} says that words of {safe(place)} were erased, and they are there")
            elif not self.blank[place].withheld:
                self.later[place] = hashed(stands)

    def check_erased(self, up_to: int) -> None:
        """An event authorises whatever was erased, and what stands there is what was left of it; as much is proven of what is withheld."""
        left, erased, later, unsure = self._left_of_words(), 0, 0, 0
        unproven: dict[str, None] = {}
        for place, (position, withheld, stands, is_thinking) in self.blank.items():
            by = self.erased.get(place)
            if by and by.is_thinking and not is_thinking:
                by = None  # the rest went later
            # What is withheld may have been erased before, in part: an edition counts as the whole does.
            erased += not withheld or place in self.erased
            if not withheld:
                later += by is None
                allowed = (
                    by.stands if by and by.position > position else None if by else self.later.get(place)
                )
                if stands != allowed:
                    self.find("erased", f"{where(position, *place)}: no event authorises what stands there")
                elif by and position <= up_to < by.position:
                    unproven[by.where] = None
            if withheld != "secrets" and not is_thinking:
                unsure += position not in left
                if left.get(position, stands) != stands:
                    self.find(
                        "erased", f"{where(position, *place)}: what stands there is not all but its words"
                    )
        for at in unproven:
            self.find("erased", f"{at}: it erases what is proven, and nothing trusted covers it")
        # An edition without people withholds what says so.
        self.said.update(erased=None if self.redacted == "people" else erased, withheld={**self.kinds})
        if later:
            self.leave(f"That words of {counted(later, 'event')} were erased later: only log.db says it.")
        if unsure:
            self.leave(f"That what is left of {counted(unsure, 'event')} without words was part of each.")
        if self.kinds["secrets"]:
            self.leave(
                f"That no more than secrets was changed in {counted(self.kinds['secrets'], 'event')} in which they are masked."
            )
        if self.kinds["person"]:
            self.leave(
                f"That {counted(self.kinds['person'], 'event')} that hide persons say what they say: only their hashes are proven."
            )

    def _left_of_words(self) -> dict[int, bytes]:
        """Return what checkpoints prove to be left of events without their words, by position: the SHA-256 of it."""
        lines = {
            whole(at): hashed(stands)
            for at, stands in map(listed, listed(self.part("proof.json").object().get("unsaid", [])))
        }
        proven: dict[int, bytes] = {}
        given = sorted(lines, reverse=True)
        for one in self.taken if given else ():
            stretch: list[int] = []
            while given and given[-1] <= one.position:
                stretch.append(given.pop())
            if stretch and one.said.get("unsaid") is not None:
                text = "".join(f"{at} {lines[at].hex()}\n" for at in stretch)
                if sha256(text.encode()).hexdigest() != one.said["unsaid"]:
                    self.find("erased", f"proof.json says another `unsaid` than {one.named} was taken of")
                elif one.hash in self.proven:
                    proven.update({at: lines[at] for at in stretch})
        return proven

    def check_files(self) -> None:
        """Each file has the hash that is its name, and an event names it."""
        here = {name[6:]: part for name, part in self.parts.items() if name[:6] == "files/"}
        for name, part in here.items():
            if part.hash != name or name not in self.files:
                self.find("file", f"files/{name} is not what its name says, or no event names it")
        if missing := self.files - set(here):
            self.leave(f"That {counted(len(missing), 'file')} that events name had any content: not here.")

    def leave_the_rest(self) -> None:
        """Say what no bundle proves."""
        if self.path.is_dir():
            self.leave("That this folder is the whole archive: only the zip has a hash over all its bytes.")
        self.leave("That report.html, settings.json and the like say what the events say.")
        if dict(an_object(self.manifest["question"]), redact=None) != {"everything": True, "redact": None}:
            self.leave("That no other stream belongs to the question: the maker chose them.")
        ours, own = self.parts.get("verify.py"), Path(__file__)
        if ours is not None and own.is_file() and ours.hash != sha256(own.read_bytes()).hexdigest():
            self.leave("That the verify.py in the bundle would say the same: it is another one than this.")

    @property
    def json(self) -> Object:
        """The report, for programs."""
        counts: Object = {
            code: sum(one == code for one, _ in self.wrong)
            for code in sorted({code for code, _ in self.wrong})
        }
        wrong: list[Json] = [{"code": code, "problem": problem} for code, problem in self.wrong[:1000]]
        return {"ok": self.ok, **self.said, "counts": counts, "wrong": wrong, "unproven": [*self.unproven]}

    def lines(self) -> Iterator[str]:
        """Yield the report, for people."""
        said = self.said
        if self.ok:
            yield f"OK: {counted(len(self.positions), 'event')} in {counted(len(self.ends), 'stream')} are as they were written, up to #{self.position}"
            yield f"  of the log {safe(self.log_id)}" + (
                f"; {said['redacted']} withheld" if said["redacted"] else ""
            )
            question = json.dumps(said["question"], separators=(",", ":"), ensure_ascii=False)
            yield f"  chosen for the question {safe(question)}"
            if self.proven:
                last = an_object(said["checkpoint"])
                yield f"  {whole(said['proven']):,} of them with their places by its checkpoint of #{last['position']}, {last['hash']}"
            for name, words in (
                ("signedUpTo", "signed by a trusted key"),
                ("cosignedUpTo", f"cosigned by {self.quorum} of {len(self.witnesses)} trusted witnesses"),
                ("publishedUpTo", "as published"),
            ):
                if said[name]:
                    yield f"  {words} up to #{said[name]}"
            if said["signedBy"] in self.trusted:
                yield f"  the bundle is signed by the trusted key {said['signedBy']}"
            if said["erased"]:
                yield f"  words of {counted(whole(said['erased']), 'event')} were erased"
        else:
            yield f"WRONG: {counted(len(self.wrong), 'finding')} in {safe(str(self.path))}"
            yield from (f"  {code}: {problem}" for code, problem in self.wrong[:MOST_SHOWN])
            if len(self.wrong) > MOST_SHOWN:
                yield f"  and {len(self.wrong) - MOST_SHOWN} more"
        if self.unproven:
            yield "Not proven by this:"
            yield from (f"  {sentence}" for sentence in self.unproven)


def _files_in(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        if value.get("type") == "file" and is_hex(value.get("sha256")):
            yield str(value["sha256"])
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        yield from _files_in(one)


def read_given(name: str) -> bytes:
    """Read a file that the command line names; raise ValueError where it is a device, a pipe, or too large."""
    path = Path(name)
    if path.exists() and not path.is_file():
        raise ValueError("it is no file")
    with path.open("rb") as file:
        data = file.read(MOST_IN_MEMORY + 1)
    if len(data) > MOST_IN_MEMORY:
        raise ValueError(f"more than {MOST_IN_MEMORY} bytes: give a smaller file")
    return data


def trusted_of(given: Iterable[str], quorum: int = 0) -> tuple[dict[str, bytes], list[Vkey]]:
    """Return the keys of hosts and of witnesses, each as it is written or in a file of such lines; raise Unusable where it is no key."""
    found: dict[str, bytes] = {}
    witnesses: list[Vkey] = []
    for one in given:
        try:
            text = one if one[:8] == "ed25519:" or VKEY.fullmatch(one) else read_given(one).decode()
            found.update(keys_in(text))
            if "-----BEGIN" not in text:
                named = [vkey_of(word) for word in words_of(text) if word[:8] != "ed25519:"]
                witnesses += [each for each in named if each.is_witness]
        except (OSError, ValueError) as error:
            raise Unusable(f"--trust {safe(one)}: {safe(str(error))}") from None
    if not 0 <= quorum <= len({one.key for one in witnesses}):
        raise Unusable(f"--quorum {quorum}: {counted(len(witnesses), 'witness key')} is trusted")
    return found, witnesses


def published_of(given: Iterable[str]) -> list[Checkpoint]:
    """Return the checkpoints of files that were published before; raise Unusable where one holds something else."""
    found: list[Checkpoint] = []
    for one in given:
        try:
            found += published_in(read_given(one))
        except (OSError, ValueError) as error:
            raise Unusable(f"--published {safe(one)}: {safe(str(error))}") from None
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the bundle that the arguments name, and say what was found."""
    asked = argparse.ArgumentParser(description="Checks a bundle of events of an Intersession log.")
    asked.add_argument("bundle", help="the zip, or the folder that it was unpacked into")
    asked.add_argument(
        "--trust",
        action="append",
        default=[],
        help="the public key of the log's host or of a witness, or a file of such keys",
    )
    asked.add_argument(
        "--quorum", type=int, default=0, help="how many of the trusted witnesses it takes; 0 is all"
    )
    asked.add_argument(
        "--published", action="append", default=[], help="a file of checkpoints that were published before"
    )
    asked.add_argument("--json", action="store_true", help="say it as JSON")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # of a terminal that has not every letter
    given = asked.parse_args(arguments)
    try:
        trusted, witnesses = trusted_of(given.trust, given.quorum)
        published = published_of(given.published)
        found = Check(Path(given.bundle), trusted, published, witnesses, given.quorum).run()
    except Unusable as error:
        sys.stderr.write(f"{safe(str(error), 1000)}\n")
        return 2
    try:
        for line in [json.dumps(found.json, indent=2)] if given.json else found.lines():
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # its reader has seen enough (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0 if found.ok else 1


if __name__ == "__main__":
    sys.exit(main())
