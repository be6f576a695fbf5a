"""What the logic of a connection wants done: whoever has the socket does it."""

import msgspec

from intersession_events.basics.plain_json import JsonObject


class Send(msgspec.Struct, frozen=True):
    """Send a frame. `position`: the place in the log it tells of."""

    text: str
    position: int | None = None


class Close(msgspec.Struct, frozen=True):
    """Close the connection."""

    code: int
    reason: str


class Welcome(msgspec.Struct, frozen=True):
    """Somebody is in: answer request `request_id` with `welcomed`."""

    request_id: str


class Perform(msgspec.Struct, frozen=True):
    """Call a method; its outcome comes back through `answered` or `refused`."""

    request_id: str
    method: str
    params: JsonObject


Effect = Send | Close | Welcome | Perform
