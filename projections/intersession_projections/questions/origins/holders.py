"""Everything in a log that holds some words: in which session they stand, how they came there, and where they went (ANS-3)."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, Literal, NamedTuple

from intersession_events import facts
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row
from intersession_projections.basics.speakers import as_read
from intersession_projections.questions.origins.hops import Reads, key_of, strings_in, text_in
from intersession_projections.questions.origins.origins import Shows

Way = Literal["told", "own", "tool", "search", "inherited", "system", "summary", "line", "sent"]
"""How words came to where they are: somebody told them to the session, its agent said them, a tool gave them, or a tool that shows
other sessions; they came with the transcript of the requester, stand in what the system says beside a message, in a summary of
what was said earlier, or in a line of an import that is no message; or they went to a channel."""

SHOWING: Final = frozenset({"sessions_history", "sessions_list", "sessions_search"})
"""Tools that show what was said in sessions."""

SUMMARY: Final = "compaction"
"""The kind of an imported line with a summary, which agents were given."""

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
            reads = str if shows is None else None if _is_operators(event) else shows(key)
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
    if isinstance(event, facts.LineImported):
        yield "summary" if event.kind == SUMMARY else "line", strings_in(event.source, reads)
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


def _is_operators(event: facts.Event) -> bool:
    """Whether an event is no part of a transcript, and so the operator's alone (FIND-1)."""
    return isinstance(event, facts.LineImported) and event.kind != SUMMARY


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
