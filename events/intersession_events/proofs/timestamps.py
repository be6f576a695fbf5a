"""Timestamps of RFC 3161 over a checkpoint's hash: the request, and what of the response can be seen without the authority's certificate (TLOG-6).

Whether the authority signed it is for `openssl ts -verify` to say, with the certificates that the auditor trusts.
"""

from typing import Final

# TimeStampReq { version 1, messageImprint { sha256, NULL; OCTET STRING of 32 bytes }, certReq TRUE }
_BEFORE: Final = bytes.fromhex("30390201013031300d060960864801650304020105000420")
_AFTER: Final = bytes.fromhex("0101ff")
_MOST_BYTES: Final = 65_536
_GRANTED: Final = (b"\x00", b"\x01")


def timestamp_request(digest: bytes) -> bytes:
    """Return the request for a SHA-256, in DER."""
    return _BEFORE + digest + _AFTER


def timestamp_problem(response: bytes, digest: bytes) -> str | None:
    """Say why a response is no timestamp of a SHA-256; None if it looks like one."""
    if len(response) > _MOST_BYTES:
        return f"it has {len(response)} bytes, a response has at most {_MOST_BYTES}"
    status = _inner(_inner(response))
    if status is None:
        return "it is no response of RFC 3161 in DER"
    if status[:2] != b"\x02\x01" or status[2:3] not in _GRANTED:
        return f"the authority refused it (status {status[2:3].hex() or 'none'})"
    return None if digest in response else "it is of another hash"


def _inner(der: bytes | None) -> bytes | None:
    """Return what is in a SEQUENCE."""
    if der is None or len(der) < 2 or der[0] != 0x30:  # noqa: PLR2004 - tag and length
        return None
    more = der[1] & 0x7F if der[1] & 0x80 else 0
    return der[2 + more :]
