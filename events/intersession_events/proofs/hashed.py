"""The input of an event's hash: its envelope and its place in its stream, and the digest of its payload in place of the texts.

The decision record is a text of its own there; an event without one is hashed without the field.
"""

from hashlib import sha256
from typing import Final

import msgspec

_ENCODE: Final = msgspec.json.Encoder().encode


class Hashed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """The fields in canonical order: what is encoded here is what RFC 8785 says."""

    causation: str | None
    correlation: str | None
    decision: str = ""
    epoch: int
    event_id: str
    log_id: str
    payload_digest: str
    prev: str
    stream: str
    time_ms: int
    topic: str
    version: int

    @property
    def hash(self) -> str:
        """The event's hash, in lower-case hex.

        Raises:
            ValueError: a text can't be encoded, or a number is too large.
            TypeError: a field of a damaged row has a value of another type.
        """
        return sha256(_ENCODE(self)).hexdigest()
