"""Searches the log itself: without a stored index, that is much faster than building one.

What it takes tells how often a word stands in what is looked at, whoever may read it. So it is for readers of everything.
"""

import re
from collections.abc import Collection, Iterator
from functools import cache
from typing import Final, Literal, NamedTuple

import msgspec

from intersession_events.basics.ids import SESSIONS
from intersession_events.facts import (
    SAYING,
    TOPICS,
    fields_of_words,
    may_say,
    ready,
    unsaid,
)
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.row_state import payload_in
from intersession_events.log.sql import Row
from intersession_projections.basics.row_prefilter import prefiltered
from intersession_projections.views.full_text.found import Wanted
from intersession_projections.views.full_text.searched_texts import (
    message_of,
    texts_of_event,
    texts_of_message,
)
from intersession_projections.views.full_text.tokens import LONGEST, Term, folded, holds, terms
from intersession_projections.views.full_text.view import NOBODY, agent_of

_ESCAPED: Final = b"\\u"
"""A letter may be written so in JSON that is a text of an event: then it is not found as it is."""


@ready
class _MessageContent(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw()


@ready
class _Line(msgspec.Struct):
    message: _MessageContent


_CONTENT: Final = msgspec.json.Decoder(_Line).decode
_PARTS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _Looked(NamedTuple):
    """The scanned part of a stream."""

    messages: bool
    events: bool


class Scan:
    """The full text of a log without an index: rows are scanned as stored, and possible matches are decoded.

    Messages are looked at whole, where the groups of whole messages are asked for: there it finds what the index finds.
    """

    indexed = False

    def __init__(self, log: Log) -> None:
        self._log = log
        keys = [NOBODY, *(stream.removeprefix(SESSIONS) for stream in log.streams(SESSIONS))]
        self._sessions = {key: number for number, key in enumerate(keys, 1)}
        self._agents = {agent: number for number, agent in enumerate(dict.fromkeys(map(agent_of, keys)), 1)}

    def names(self, kind: Literal["agent", "session"]) -> dict[str, int]:
        """Return the numbers of all agents (`agent:NAME`), or of all sessions (by their keys), for groups."""
        return self._agents if kind == "agent" else self._sessions

    def positions(self, wanted: Wanted) -> Iterator[int]:
        """Yield the positions of the matches, newest first, read as they are consumed."""
        if not wanted.groups or not wanted.terms:
            return
        parts = [_Part(term) for term in wanted.terms]
        known: dict[str, _Looked] = {}

        def may(row: Row) -> bool:
            stream = row[1]
            if (looked := known.get(stream)) is None:
                looked = known[stream] = self._looked(stream, wanted.groups)
            return (looked.messages if row[3] in SAYING else looked.events) and _may_hold(row, parts)

        for recorded in prefiltered(self._log, wanted.span, may):
            if (not wanted.topics or recorded.topic in wanted.topics) and holds(
                terms(_texts(recorded)), wanted.terms
            ):
                yield recorded.position

    def _looked(self, stream: str, groups: Collection[str]) -> _Looked:
        key = stream.removeprefix(SESSIONS) if stream.startswith(SESSIONS) else NOBODY
        if key not in self._sessions:  # it began a moment ago
            return _Looked(messages=False, events=False)
        agent, session = self._agents[agent_of(key)], self._sessions[key]
        return _Looked(
            messages=f"q{agent}" in groups or f"p{session}" in groups,
            events=f"f{agent}" in groups or f"e{session}" in groups,
        )


def _texts(recorded: Recorded) -> Collection[str]:
    if not may_say(recorded.event) or unsaid(recorded.event) == recorded.event:
        return ()
    raw = message_of(recorded)
    return texts_of_event(recorded) if raw is None else texts_of_message(raw)


class _Part:
    """A word in the forms in which it can be stored."""

    def __init__(self, term: Term) -> None:
        self._text = folded(term.text)
        self._plain = self._text.encode()
        word = re.escape(self._text)
        ends = "" if term.begins or len(term.text) == LONGEST else "(?![a-z0-9])"
        # The word stands first: so much is looked for at once. A line's end before it is written as a letter.
        alone = rf"{word}(?:(?<![a-z0-9]{word})|(?<=\\[bfnrt]{word})){ends}"
        self._alone = re.compile(alone.encode())

    def may_be_in(self, low: bytes) -> bool:
        """Whether it is somewhere in ASCII in small letters."""
        return self._plain in low

    def is_alone_in(self, low: bytes) -> bool:
        """Whether it is there, and no part of a longer word."""
        return self._alone.search(low) is not None

    def may_be_in_any(self, text: str) -> bool:
        """Whether it is somewhere in a text with other letters than those of ASCII, folded."""
        return self._text in text


def _may_hold(row: Row, parts: Collection[_Part]) -> bool:
    """Whether a row may contain all of some words: first anywhere in it, then in its messages."""
    fields = _fields(row[3])
    if fields == ():
        return False
    payload = payload_in(row[4])
    if payload is None or _ESCAPED in payload:
        return True
    if not payload.isascii():
        text = folded(payload.decode("utf-8", "replace"))
        return all(part.may_be_in_any(text) for part in parts)
    low = payload.lower()
    if not all(part.may_be_in(low) for part in parts):
        return False
    said = _said(row[3], payload).lower()
    return all(part.may_be_in(said) and part.is_alone_in(said) for part in parts)


@cache
def _fields(topic: str) -> tuple[str, ...] | None:
    """Return the stored fields with an event's words; None: anywhere."""
    kind = TOPICS.get(topic)
    return None if kind is None else fields_of_words(kind)


def _said(topic: str, payload: bytes) -> bytes:
    """Return the part of a payload in which its words stand."""
    fields = _fields(topic)
    try:
        if topic in SAYING:
            return bytes(_CONTENT(payload).message.content)
        if fields is not None:
            stored = _PARTS(payload)
            return b" ".join(bytes(stored[name]) for name in fields if name in stored)
    except (ValueError, RecursionError):
        pass  # reading it as an event says what is wrong with it
    return payload
