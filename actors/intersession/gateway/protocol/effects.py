"""The effects that a connection's logic returns: the owner of the socket carries them out."""

import msgspec

from intersession_events.basics.plain_json import JsonObject


class Send(msgspec.Struct, frozen=True):
    """Send a frame. `position`: the place in the log that it reports."""

    text: str
    position: int | None = None


class Close(msgspec.Struct, frozen=True):
    """Close the connection."""

    code: int
    reason: str


class Welcome(msgspec.Struct, frozen=True):
    """Admit the client: answer request `request_id` with `welcomed`."""

    request_id: str


class Perform(msgspec.Struct, frozen=True):
    """Call a method, once the host has read up to `after`; its outcome comes back through `answered` or `refused`."""

    request_id: str
    method: str
    params: JsonObject
    after: int = 0


Effect = Send | Close | Welcome | Perform
