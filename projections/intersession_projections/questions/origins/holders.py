"""Everything in a log that holds some words: in which session they stand, how they came there, and where they went (ANS-3)."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, Literal, NamedTuple

from intersession_events import facts
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row
from intersession_projections.basics.speakers import as_read
from intersession_projections.questions.origins.hops import Reads, key_of, text_in
from intersession_projections.questions.origins.origins import Shows

Way = Literal["told", "own", "tool", "search", "inherited", "system", "summary", "sent"]
"""How words came to where they are: somebody told them to the session, its agent said them, a tool gave them, or a tool that shows
other sessions; they came with the transcript of the requester, stand in what the system says beside a message, or in a summary of
what was said earlier; or they went to a channel."""

SHOWING: Final = frozenset({"sessions_history", "sessions_list", "sessions_search"})
"""Tools that show what was said in sessions."""

_AT_ONCE: Final = 256


class Holder(NamedTuple):
    """An event that holds the words; `session_key` is the session in which they stand, or that sends them to `route`."""

    recorded: Recorded
    session_key: str
    ways: tuple[Way, ...]
    tool: str | None = None
    route: facts.Route | None = None


def holders(
    log: Log, rows: Iterable[Row], says: Callable[[str], bool], shows: Shows | None
) -> Iterator[Holder]:
    """Yield the events at some rows that hold the words as the caller reads them, in log order."""
    left = (row[0] for row in rows)
    while some := list(islice(left, _AT_ONCE)):
        for recorded in log.at(some):
            event = recorded.event
            key = event.session_key if isinstance(event, facts.DeliveryDecided) else key_of(recorded)
            reads = str if shows is None else shows(key)
            holder = None if reads is None else _holder(recorded, key, says, reads)
            if holder is not None:
                yield holder


def _holder(recorded: Recorded, key: str, says: Callable[[str], bool], reads: Reads) -> Holder | None:
    event = recorded.event
    if isinstance(event, facts.DeliveryDecided):
        return Holder(recorded, key, ("sent",), route=event.route) if says(reads(event.text)) else None
    ways: dict[Way, None] = {way: None for way, text in _texts(event, reads) if says(text)}
    message = as_read(event)
    tool = message.tool_name if message is not None and message.role == "toolResult" else None
    return Holder(recorded, key, tuple(ways), tool) if ways else None


def _texts(event: facts.Event, reads: Reads) -> Iterator[tuple[Way, str]]:
    """Yield what an event brings into what its session's agent is given, each text as the caller reads it."""
    if isinstance(event, facts.RunCompleted) and event.covers is not None:
        yield "summary", reads(event.reply or "")
        return
    message = as_read(event)
    if message is not None:
        yield _way(message), all_of(message, reads)
    if isinstance(event, facts.RunQueued):
        yield "system", reads(event.system_context)
        for text in _instructions(event):
            yield "system", reads(text)
    if isinstance(event, facts.TranscriptGiven):
        for one in event.given:
            yield "inherited", all_of(one, reads)


def _instructions(event: facts.RunQueued) -> tuple[str, ...]:
    return () if event.instructions is None else event.instructions.texts


def all_of(message: facts.Message, reads: Reads) -> str:
    """Return all texts of a message as the caller reads them, those of JSON as they are said and as they are written."""
    said, written = text_in(message, reads), reads(facts.text_of(message))
    return said if said.startswith(written) else f"{said}\n{written}"


def _way(message: facts.Message) -> Way:
    match message.role:
        case "assistant":
            return "own"
        case "toolResult":
            return "search" if message.tool_name in SHOWING else "tool"
        case "user" | "system":
            return "told"
