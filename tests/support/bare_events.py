"""Recorded events for tests of what is folded from a stream: without hashes, each at the position of its version."""

from intersession_events.facts import Event, topic_of
from intersession_events.log.recorded import Recorded


def bare(
    stream: str,
    version: int,
    event: Event,
    *,
    time: int = 0,
    correlation: str | None = None,
    digest: str = "",
) -> Recorded:
    """Return an event as its stream's version."""
    return Recorded(
        position=version,
        stream=stream,
        version=version,
        topic=topic_of(event),
        event=event,
        id=f"e{version}",
        time=time,
        causation=None,
        correlation=correlation,
        epoch=1,
        prev="",
        digest=digest,
        hash="",
    )
