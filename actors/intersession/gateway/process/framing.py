"""Checks how the messages on an HTTP/1 connection are framed, more strictly than the parser behind it does. Pure.

A proxy before the gateway that reads a frame in another way than the gateway would let a request through that it has
never judged. So whatever can be read in two ways is refused: a length beside a transfer coding, two lengths, lines that end in
a bare LF, folded lines, chunk extensions, trailers.
"""

import re
from typing import Final

HEAD_BYTES: Final = 64 * 1024
"""The longest head."""

_CHUNK_LINE: Final = 18
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\x00\r\n]*)")
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")
_CHUNK: Final = re.compile(rb"[0-9A-Fa-f]{1,15}")
_BARE: Final = re.compile(rb"(?<!\r)\n|\r[^\n]")
_LAST: Final = b"\r\n"


class BadFraming(ValueError):
    """The bytes can be read as more than one message, or in more than one way."""


class Framing:
    """Follows the bytes of one connection. After a `BadFraming` no more of them may be used."""

    def __init__(self) -> None:
        self._pending = b""
        self._body = 0
        """Bytes of a body, or of a chunk with its line end, that are still to come."""
        self._chunked = False

    def take(self, data: bytes) -> None:
        """Take bytes before they are parsed.

        Raises:
            BadFraming: it must not be parsed; says why.
        """
        known = len(self._pending)
        data = self._pending + data if known else data
        self._pending = b""
        at = 0
        while at < len(data):
            if self._body:
                at = self._pass_body(data, at)
                continue
            end = data.find(b"\r\n" if self._chunked else b"\r\n\r\n", max(at, known - 3))
            if end < 0:
                self._keep(data[at:], max(0, known - at - 1))
                return
            known = 0
            if self._chunked:
                at = self._begin_chunk(data, at, end)
                if at < 0:
                    return
            else:
                self._begin_message(data[at:end])
                at = end + 4

    def _keep(self, rest: bytes, known: int) -> None:
        """Wait for the rest of a line or a head, which may not be longer than it can be; `known` bytes were looked at."""
        if self._chunked and len(rest) > _CHUNK_LINE:
            raise BadFraming("a chunk's size is followed by something else")
        if len(rest) > HEAD_BYTES:
            raise BadFraming("the head is too large")
        if not self._chunked and _BARE.search(rest, known):
            raise BadFraming("a line does not end in CR LF")
        self._pending = rest

    def _begin_message(self, head: bytes) -> None:
        lines = head.split(b"\r\n")
        if any(b"\r" in line or b"\n" in line for line in lines):
            raise BadFraming("a line does not end in CR LF")
        if len(head) > HEAD_BYTES:
            raise BadFraming("the head is too large")
        headers = [_header(line) for line in lines[1:]]
        lengths = [value for name, value in headers if name == b"content-length"]
        codings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
        if lengths and codings:
            raise BadFraming("content-length beside transfer-encoding")
        if len(lengths) > 1 or len(codings) > 1:
            raise BadFraming("content-length or transfer-encoding is given twice")
        if codings and (codings != [b"chunked"] or not lines[0].endswith(b" HTTP/1.1")):
            raise BadFraming("transfer-encoding: only chunked, in HTTP/1.1")
        if lengths and not _LENGTH.fullmatch(lengths[0]):
            raise BadFraming("content-length: no number of bytes")
        self._chunked = bool(codings)
        self._body = int(lengths[0]) if lengths else 0

    def _begin_chunk(self, data: bytes, at: int, end: int) -> int:
        """Return where a chunk begins, or the next message after the last one; -1 to wait for more."""
        if not _CHUNK.fullmatch(data, at, end):
            raise BadFraming("a chunk's size is no number, or is followed by something else")
        size = int(data[at:end], 16)
        begin = end + 2
        if size:
            self._body = size + len(_LAST)
            return begin
        last = data[begin : begin + 2]
        if last == _LAST:
            self._chunked = False
            return begin + 2
        if not _LAST.startswith(last):
            raise BadFraming("the last chunk is followed by trailers")
        self._pending = data[at:]
        return -1

    def _pass_body(self, data: bytes, at: int) -> int:
        """Pass over a body or a chunk; a chunk's own last two bytes are its line end."""
        passed = min(self._body, len(data) - at)
        if self._chunked:
            for offset in range(max(at, at + self._body - 2), at + passed):
                if data[offset] != _LAST[offset - at - self._body]:
                    raise BadFraming("a chunk is longer than it said")
        self._body -= passed
        return at + passed


def _header(line: bytes) -> tuple[bytes, bytes]:
    found = _HEADER.fullmatch(line)
    if found is None:
        raise BadFraming("a header is folded, or has no name of the right form")
    return found[1].lower(), found[2].strip(b" \t")
