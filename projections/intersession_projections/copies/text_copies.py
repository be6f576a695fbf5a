"""Finds copies of texts anywhere in a log: whole, cut short, within others, or within JSON. For `sessions.erase`."""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from typing import Final, Literal, cast

import msgspec

from intersession_events.basics.ids import session_stream
from intersession_events.facts import (
    AccessRecorded,
    Block,
    Event,
    LineImported,
    Message,
    SpawnAccepted,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    TranscriptGiven,
    encode,
    held_by,
    is_summary,
    message_in,
    parts_of,
    run_named,
)
from intersession_events.log.recorded import Recorded

QUOTED: Final = 20
"""The least length of a text that is looked for; a shorter one may be found by chance."""
_LONG: Final = 200
"""Of a longer text its beginning is looked for as well: within other words it may have been cut short. Others may begin so, too."""
_CUT_SHORT: Final = re.compile(r" ?[\[(<]? ?(?:…|\.{3}(?!\.)|\*{3})")
"""What stands where a text was cut short, or a secret masked in it."""
_RUN: Final = 7
"""The number of consecutive pairs of words, found in the texts, that count as a partial quotation."""
_MOST_PAIRS: Final = 2_000_000
_DEEP: Final = 6
_TOKEN: Final = re.compile(r"\w+")
_BEFORE: Final = re.compile(r"^(?:\[[^\]\n]{1,200}\] ?)+")
"""What channels and systems put before a text: `[Sat 2026-11-21 04:05 UTC] `."""
_CUT: Final = re.compile(r"[ .…]+$")
_ASKED: Final = frozenset({"words", "search", "query", "text"})
"""The arguments by which words are asked for."""


def said_in(event: Event) -> Iterator[str]:
    """Yield the texts of an event's messages, and plain texts in the arguments and results of tools."""
    if (message := message_in(event)) is not None:
        for block in _blocks(message):
            yield from _said_in_block(block, message.role)
    if isinstance(event, LineImported):
        yield from filter(_is_said, strings_in(event.source.encode()))
    for part in parts_of(event):
        for name in held_by(type(part)).said:
            said: str | None = getattr(part, name)
            if said:
                yield said


def _blocks(message: Message) -> Iterable[Block]:
    return (TextBlock(text=message.content),) if isinstance(message.content, str) else message.content


def _said_in_block(block: Block, role: str) -> Iterator[str]:
    match block:
        case TextBlock(text=text) if role != "toolResult" or not _is_json(text):
            yield text
        case ThinkingBlock():
            yield block.thinking
        case ToolCallBlock():
            yield from filter(_is_said, strings_in(block.arguments.encode()))
        case _:
            pass


def _is_said(text: str) -> bool:
    """Whether a text among data is a person's or agent's words, and not a name, id, path or time."""
    return " " in text or not text.isascii()


def strings_in(payload: bytes) -> Iterator[str]:
    """Yield all texts in a piece of JSON, also within texts that are JSON themselves."""
    return (value for value in _values_in(payload) if isinstance(value, str))


def shows(message: Message, names: Collection[str]) -> bool:
    """Return whether a tool's result shows messages of a session, by one of its names: in a history, a list or a hit.

    So a copy is known by whose it says that it is, however short it may be, and where it is the data of another tool.
    """
    return message.role == "toolResult" and any(
        _is_of(value, names)
        for block in _blocks(message)
        if isinstance(block, TextBlock)
        for value in _values_in(block.text.encode(errors="replace"))
    )


def _is_of(value: object, names: Collection[str]) -> bool:
    if not isinstance(value, dict):
        return False
    shown = cast("dict[str, object]", value)
    named = (shown.get("sessionKey"), shown.get("key"))
    return any(name in named for name in names) and bool(shown.get("messages") or shown.get("snippet"))


def _values_in(payload: bytes) -> Iterator[object]:
    """Yield all texts and objects in a piece of JSON."""
    waiting: list[tuple[object, int]] = [(_read(payload), 0)]
    while waiting:
        value, deep = waiting.pop()
        match value:
            case str():
                yield value
                if deep < _DEEP and _is_json(value):
                    waiting.append((_read(value.encode(errors="replace")), deep + 1))
            case dict():
                yield value
                waiting += [(one, deep) for one in value.values()]  # pyright: ignore[reportUnknownVariableType]
            case list():
                waiting += [(one, deep) for one in value]  # pyright: ignore[reportUnknownVariableType]
            case _:
                pass


def _read(text: bytes) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _is_json(text: str) -> bool:
    return text[:1] in {"{", "["} and text[-1:] in {"}", "]"}


def _normal(text: str) -> str:
    return " ".join(text.split()).casefold()


class Copies:
    """Texts to look for. White space and case make no difference."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._known: dict[str, bool] = {}
        """All texts, and whether only the whole one is a copy."""
        self._wanted: dict[tuple[str, str], list[int]] = {}
        """The texts that have a pair of words near their beginning; what has fewer words is in `_plain`."""
        self._plain: dict[int, bool] = {}
        """Each with whether only the whole one is a copy."""
        self._begun: dict[int, str] = {}
        """The longer texts of those that are only their beginnings."""
        self._pairs: dict[tuple[str, str], list[int]] = {}
        self.is_all_known = True
        """Whether parts of all texts are known, so that those can be found, too."""

    def __bool__(self) -> bool:
        return bool(self._texts)

    def note(self, texts: Iterable[str], *, whole: bool = False) -> None:
        """Look for these texts as well; for them alone, if it is `whole` ones: what is in one of them was there before it, maybe."""
        for text in texts:
            said = _BEFORE.sub("", _normal(text), count=1).strip()
            if not said or self._known.get(said, True) is False or (whole and said in self._known):
                continue
            self._known[said] = whole
            if len(said) < QUOTED:
                continue
            self._put(said, whole=whole)
            if len(said) > _LONG:
                self._begun[len(self._texts)] = said
                self._put(said[:_LONG].rsplit(" ", 1)[0], whole=whole)

    def _put(self, said: str, *, whole: bool) -> None:
        number = len(self._texts)
        self._texts.append(said)
        pairs = _pairs(said)
        if not pairs:
            self._plain[number] = whole
            return
        # The first and the last word may be a part of one where the text is quoted.
        self._wanted.setdefault(pairs[min(1, len(pairs) // 3)], []).append(number)
        if whole:
            return
        if len(self._pairs) > _MOST_PAIRS:
            self.is_all_known = False
            return
        for pair in set(pairs):
            self._pairs.setdefault(pair, []).append(number)

    def found_in(self, event: Event) -> Literal["whole", "part"] | None:
        """Return whether one of the texts, or only a part of one, stands in any field of an event."""
        found: Literal["part"] | None = None
        for text in strings_in(encode(event)):
            match self._found(_normal(text)):
                case "whole":
                    return "whole"
                case "part":
                    found = "part"
                case None:
                    pass
        return found

    def _found(self, said: str) -> Literal["whole", "part"] | None:
        if len(said) < QUOTED:
            return None
        texts, pairs = self._texts, _pairs(said)
        for pair in self._wanted.keys() & set(pairs):
            if any(self._stands_in(said, number) for number in self._wanted[pair]):
                return "whole"
        cut = _CUT.sub("", said)
        beginning = (
            self._pairs.get(pairs[0], [])
            if pairs
            else [number for number, whole in self._plain.items() if not whole]
        )
        if len(cut) >= QUOTED and _is_said(cut) and any(cut in texts[number] for number in beginning):
            return "whole"
        if any(self._stands_in(said, number) for number in self._plain):
            return "whole"
        run = 0
        for pair in pairs:
            # What has digits in it is an id more often than not.
            run = run + 1 if pair in self._pairs and "".join(pair).isalpha() else 0
            if run >= _RUN:
                return "part"
        return None

    def _stands_in(self, said: str, number: int) -> bool:
        """Whether a text stands in another one; of a longer text, whether that goes on there until it was cut short."""
        text, longer = self._texts[number], self._begun.get(number)
        at = said.find(text)
        while longer is not None and at >= 0:
            end = at + _alike(longer, said[at : at + len(longer)])
            if end == len(said) and not self._known[longer]:
                return True
            dots = end - len(said[at:end].rstrip(".")) - at
            mark = _CUT_SHORT.match(said, end - dots)
            if mark is not None and mark.end() > end:
                return True
            at = said.find(text, end)
        return at >= 0

    def are_asked_for(self, event: AccessRecorded) -> bool:
        """Return whether a call asked for words that stand together in one of the texts, however short."""
        given = _read(event.filters.encode())
        for name, value in given.items() if isinstance(given, dict) else ():  # pyright: ignore[reportUnknownVariableType]
            if name in _ASKED and isinstance(value, str):
                tokens = _TOKEN.findall(value.casefold())
                if tokens and any(all(token in text for token in tokens) for text in self._known):
                    return True
        return False


def _alike(one: str, other: str) -> int:
    """Return the number of characters with which both begin."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _pairs(said: str) -> list[tuple[str, str]]:
    tokens = _TOKEN.findall(said)
    return list(pairwise(tokens))


def copied(recorded: Recorded, copies: Copies, keys: Collection[str]) -> Literal["whole", "part"] | None:
    """Return whether an event has one of the texts, or a part of one, or says that it came from one of some sessions."""
    event = recorded.event
    if keys and (message := message_in(event)) is not None:
        origin = message.provenance
        if origin is not None and origin.source_session_key in keys:
            return "whole"
        if shows(message, {name for key in keys for name in _names(key, recorded.stream)}):
            return "whole"
    if isinstance(event, AccessRecorded) and copies.are_asked_for(event):
        return "whole"
    return copies.found_in(event) if copies else None


class Inheritances:
    """Finds the transcripts that children began with, of a session that goes, or with messages or summaries that do (CHILD-6)."""

    def __init__(self, keys: Collection[str], ids: Collection[str]) -> None:
        self._keys = keys
        self._ids = {*ids}
        """Of messages, and of the runs that have summarised."""
        self._streams = set[str]()

    def has(self, recorded: Recorded) -> bool:
        """Whether it is such a transcript, or a summary by a child that began with one."""
        event = recorded.event
        given = event.transcript if isinstance(event, SpawnAccepted) else event
        if not isinstance(given, TranscriptGiven):
            if recorded.stream not in self._streams or not is_summary(event):
                return False
            self._ids.add(run_named(event) or "")
            return True
        ids = {one.id for one in given.given}
        if given.summary is not None:
            ids.add(given.summary)
        if given.requester not in self._keys and ids.isdisjoint(self._ids):
            return False
        self._streams.add(recorded.stream)
        # A child of that child may have been given the same; the first of all messages says what a summary said.
        self._ids |= ids if given.requester in self._keys else {given.given[0].id}
        return True


def _names(key: str, stream: str) -> set[str]:
    """Return how a session is named to the one with a stream: the main session of its own agent is `main` to it."""
    agent, _, rest = key.removeprefix("agent:").partition(":")
    return {key, "main"} if rest == "main" and stream.startswith(session_stream(f"agent:{agent}:")) else {key}
