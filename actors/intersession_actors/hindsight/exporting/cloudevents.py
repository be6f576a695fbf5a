"""Writes events as CloudEvents 1.0 in the structured form of JSON, one a line (OUT-3)."""

from typing import Final

import msgspec

from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import encode
from intersession_events.log.recorded import Recorded
from intersession_events.transcripts.openclaw.export import iso

_TYPE: Final = "intersession."
_FIELDS: Final = ("position", "version", "epoch", "hash", "prev", "digest", "causation", "correlation")
"""Extension attributes: the spec allows lower-case letters and digits in their names."""


def cloud_event(recorded: Recorded, log_id: str) -> bytes:
    """Return an event. `source` is the log, `subject` the stream, `type` the stored name of the event behind `intersession.`.

    `data` is the event as readers are shown it: where secrets are hidden, `digest` and `hash` are those of the original.
    """
    known: JsonObject = {name: getattr(recorded, name) for name in _FIELDS}
    event: JsonObject = {
        "specversion": "1.0",
        "id": recorded.id,
        "source": f"urn:intersession:log:{log_id}",
        "type": f"{_TYPE}{recorded.topic}",
        "subject": recorded.stream,
        "time": iso(recorded.time),
        "datacontenttype": "application/json",
        **present(known),
        "data": msgspec.Raw(encode(recorded.event)),
    }
    return msgspec.json.encode(event)
