"""The limits of a network door: sizes in bytes, times in seconds. They apply before anything is parsed."""

from typing import Final

import msgspec

HANDSHAKE_BYTES: Final = 64 * 1024
"""A frame of a connection that has not said who it is."""

ANSWER_BYTES: Final = 6 * 1024 * 1024
"""One answer over a connection; more is refused, so that an answer alone never fills the buffer."""

MOST_FAILURES: Final = 10
"""Failed attempts of one address within a minute; after those it has to wait."""

FAILURE_WINDOW_S: Final = 60.0

MOST_IN_FLIGHT: Final = 256
"""Requests of one connection that are not answered yet."""

MOST_OF_A_DOOR: Final = 10_000
"""The same of the connection of another host's door, which has many callers."""

MOST_FRAGMENTS: Final = 10_000
"""Fragments of one frame of a connection, which may be empty."""

MOST_PINGS: Final = 32
"""Pings of a connection that has not said who it is."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one gateway.

    `body_bytes` also holds for a frame of a connection that is in; `buffered_bytes` is what waits for a slow reader before
    it is sent away. `connections` are those of all kinds, `strangers` those of the WebSocket protocol that have not said who
    they are; where there is no room, who has been silent for longest gives way. `head_s` is how long the head of a request may
    take to arrive, and the rest of a request that was answered already; `stall_s` how long an answer of HTTP may lie unread.
    Of `connections`, one limited credential has at most `share`, and all of them together leave `reserve` free, as the
    operator's own token does. `waits` are requests over connections that are not answered yet; of these one limited
    credential has at most `waits_share`, and as much stays free.
    `behind_s` is how long a request waits for a position that this host has not read yet.
    `check_s` is how often it is looked whether a credential still counts and the configuration changed.
    """

    body_bytes: int = 8 * 1024 * 1024
    buffered_bytes: int = 8 * 1024 * 1024
    connections: int = 512
    share: int = 128
    reserve: int = 128
    waits: int = 16_384
    waits_share: int = 1_024
    strangers: int = 128
    head_s: float = 10.0
    body_s: float = 20.0
    stall_s: float = 60.0
    handshake_s: float = 10.0
    close_s: float = 5.0
    tick_s: float = 30.0
    behind_s: float = 10.0
    check_s: float = 0.5
    keep_alive_s: float = 15.0
