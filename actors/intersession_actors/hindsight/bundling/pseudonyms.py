"""Names that stand for people: the same person has the same one throughout a bundle, and nobody can work back from it. Pure.

A pseudonym says what it stands for and a number, by the order of appearance (`person-1`, `chat-2`). Ids and digests are replaced as
well: they are made of keys and words, so that a guess could be held against them. What is known to name nobody is kept; every
other text is withheld, fields of later versions among them (BUNDLE-23).
"""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Final, Literal, cast, get_args, get_origin, get_type_hints

import msgspec

from intersession_actors.rules.disclosure.secret_names import listed
from intersession_events import facts
from intersession_events.basics.plain_json import JsonValue, is_list, is_object
from intersession_events.facts.base import ERASED, ERASED_JSON, ERASED_OBJECT

_Sort = Literal["person", "chat", "account", "thread", "label", "name"]

_WITHHELD: Final = "[withheld]"
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_WORD: Final = re.compile(r"[\w.:/@+-]{1,80}", re.ASCII)
_CONSTANT: Final = frozenset({"", ERASED, ERASED_JSON, ERASED_OBJECT, "{}", _WITHHELD})

_KEPT: Final = listed(
    "agent_id model thinking thinking_level verbose_level channel source_channel requester_channel target_channel other_channel last_channel "
    "tool tool_name tools limit code kind stop_reason role version mime_type loop_reason model_override cleared next_limit"
)
"""Fields with words of the system or of its configuration: of agents, models, tools and channels."""
_KEPT_BESIDE: Final = listed("event tool model code kind state status role logId redact verb purpose via")
"""Such fields of what stands beside the events."""
_PLACES: Final[Mapping[str, _Sort]] = {
    "sender": "person",
    "sender_name": "person",
    "to": "chat",
    "last_to": "chat",
    "account": "account",
    "thread": "thread",
    "display_name": "chat",
    "label": "label",
    "credential": "name",
    "door": "name",
    "idempotency_key": "name",
}
_KEYS: Final = listed(
    "key session_key requester target child speaker spawned_by original_key source_session_key path chain session other by edited_by "
    "steered_by caller denied owner stream heads asked"
)
"""Fields that name a session, a stream, or a caller."""
_SOURCES: Final = listed("source entry filters arguments report")
"""Fields with the source text of a JSON object."""
_IN_KEYS: Final = listed(
    "agent main subagent cron hook direct dm group channel thread topic run global unknown session exchange spawn delivery access erased "
    "notes log schedule operator credential inbound system timer start import person config"
)
_STREAMS: Final = listed("session access erased notes")
"""What is of a key, or of another stream."""
_ROUTED: Final = (
    facts.RouteChanged,
    facts.RunQueued,
    facts.FlowAccepted,
    facts.DeliveryDecided,
    facts.SessionImported,
    facts.ThreadBound,
    facts.ThreadUnbound,
    facts.ThreadOpened,
)
_NAMES_NEXT: Final[Mapping[str, _Sort]] = {
    "direct": "person",
    "dm": "person",
    "group": "chat",
    "channel": "chat",
    "thread": "thread",
    "topic": "thread",
}
"""What the part of a key behind one of its words names."""
_SWITCHES: Final = listed(
    "on off true false null none all allow deny main default per-sender direct group channel any full tree self agent"
)


class Pseudonyms:
    """The pseudonyms of some events: first `note` each in their order, then ask for them."""

    def __init__(self) -> None:
        self._sorts: dict[str, _Sort] = {}
        self._same: dict[str, str] = {}
        self._said: dict[str, str] = {}
        self._counts: Counter[_Sort] = Counter()
        self._keys: dict[str, str] = {}
        self._taken: set[str] = set()
        self._ids: dict[str, str] = {}
        self._direct: dict[str, bool] = {}
        self._agents: set[str] = set()
        self._channels: set[str] = set()

    def note(self, stream: str, event: facts.Event) -> None:
        """Learn whom an event names, in the order of the events."""
        match event:
            case facts.SessionOpened():
                self._agents.add(event.agent_id)
                self._direct[stream] = event.chat_type == "direct"
            case facts.RouteChanged():
                self._direct[stream] = event.chat_type == "direct" or (
                    event.chat_type is None and self._direct.get(stream, False)
                )
            case _:
                pass
        message = facts.message_in(event)
        origin = None if message is None else message.provenance
        route = event.route if isinstance(event, _ROUTED) else None
        if route is not None:
            self._channels.add(route.channel)
            self._note(route.to, "person" if self._direct.get(stream) else "chat")
        if origin is not None and origin.sender:
            self._note(origin.sender, "person")
            if origin.sender_name:
                self._note(origin.sender_name, "person", same=origin.sender)
            if route is not None and self._direct.get(stream):
                self._note(route.to, "person", same=origin.sender)

    def _note(self, name: str, sort: _Sort, *, same: str | None = None) -> None:
        folded = name.casefold()
        self._sorts.setdefault(folded, sort)
        if same is not None and same.casefold() != folded:
            self._same.setdefault(folded, same.casefold())

    def event(self, event: facts.Event) -> facts.Event:
        """Return an event with pseudonyms, and without what could name anybody."""
        if isinstance(event, facts.ConfigLoaded):
            event = msgspec.structs.replace(event, config="{}", tools=None)
        return cast("facts.Event", self._walk(event))

    def stream(self, name: str) -> str:
        """Return a stream's name, or a key, with pseudonyms; two of them stay two."""
        kind, _, rest = name.partition(":")
        if rest and kind in _STREAMS:
            return f"{kind}:{self.stream(rest)}"
        if (known := self._keys.get(name)) is None:
            known = plain = ":".join(self._parts(name))
            number = 1
            while kind == "agent" and known in self._taken:  # a person's by their name, and by their number
                number += 1
                known = f"{plain}-{number}"
            self._taken.add(known)
            self._keys[name] = known
        return known

    def id(self, name: str) -> str:
        """Return an id, by the order of appearance."""
        folded = name.casefold()
        if (known := self._ids.get(folded)) is None:
            number = len(self._ids) + 1
            known = self._ids[folded] = f"00000000-0000-4000-8000-{number:012x}"
        return known

    def _digest(self, text: str) -> str:
        if (known := self._ids.get(text)) is None:
            known = self._ids[text] = f"{len(self._ids) + 1:064x}"
        return known

    def name(self, text: str, sort: _Sort) -> str:
        """Return the pseudonym of a name, an address or a number."""
        folded = text.casefold()
        for _ in range(8):  # a sender's name, their address, their number
            if folded not in self._same:
                break
            folded = self._same[folded]
        if (known := self._said.get(folded)) is None:
            what = self._sorts.setdefault(folded, sort)
            self._counts[what] += 1
            known = self._said[folded] = f"{what}-{self._counts[what]}"
        return known

    def value(self, value: JsonValue, field: str = "") -> JsonValue:
        """Return a JSON value with pseudonyms: names of fields are kept if they are of the system, texts if they name nobody."""
        if is_object(value):
            return {self._field(name): self.value(part, name) for name, part in value.items()}
        if is_list(value):
            return [self.value(part, field) for part in value]
        if not isinstance(value, str):
            return value
        return value if field in _KEPT_BESIDE and _WORD.fullmatch(value) else self._text(value)

    def _field(self, name: str) -> str:
        return name if name.isalpha() and len(name) < 40 else self._text(name)  # noqa: PLR2004 - longer than any of ours

    def _text(self, text: str) -> str:
        """Return what may be read in the place of a text of which nobody knows what it says."""
        folded = text.casefold()
        if text in _CONSTANT or folded in _SWITCHES or text in self._agents or text in self._channels:
            return text
        if _UUID.fullmatch(text):
            return self.id(text)
        if _DIGEST.fullmatch(text):
            return self._digest(text)
        if folded in self._said or folded in self._same or folded in self._sorts:
            return self.name(text, "name")
        _, bracket, sender = text.removesuffix(")").rpartition(" (")
        if bracket and sender.casefold() in self._sorts:  # a person, as stories call them
            return self.name(sender, "person")
        if " " not in text and text.partition(":")[0] in _IN_KEYS | self._channels:
            return self.stream(text)
        return _WITHHELD

    def _parts(self, key: str) -> list[str]:
        parts: list[str] = []
        before = ""
        if key.partition(":")[0] in self._channels:  # a route, as people type it
            channel, _, to = key.partition(":")
            return [channel, self.name(to, "person")] if to else [channel]
        for part in key.split(":"):
            if not part or part in (self._agents if before == "agent" else _IN_KEYS | self._channels):
                said = part
            elif _UUID.fullmatch(part):
                said = self.id(part)
            else:
                said = self.name(part, _NAMES_NEXT.get(before, "name"))
            before = part
            parts.append(said)
        return parts

    def _walk(self, value: object, field: str = "", of: type | None = None) -> object:
        if isinstance(value, msgspec.Struct):
            kind = type(value)
            changes = {
                name: changed
                for name in _open_fields(kind)
                if (before := getattr(value, name)) is not None
                and (changed := self._walk(before, name, kind)) is not before
            }
            return msgspec.structs.replace(value, **changes) if changes else value
        if isinstance(value, tuple):
            parts = cast("tuple[object, ...]", value)
            if field == "denied" and of is None:
                target, reason = cast("tuple[str, str]", parts)
                return self.stream(target), reason if _WORD.fullmatch(reason) else _WITHHELD
            return tuple(self._walk(part, field) for part in parts)
        if isinstance(value, dict):
            texts = cast("dict[str, str]", value)
            return {self._field(name): self._text(part) for name, part in texts.items()}
        return self._say(value, field, of) if isinstance(value, str) else value

    def _say(self, text: str, field: str, of: type | None) -> str:
        if text in _CONSTANT or (
            _WORD.fullmatch(text) and (field in _KEPT or (field == "name" and of is facts.ToolCallBlock))
        ):
            return text
        if _UUID.fullmatch(text):
            return self.id(text)
        if _DIGEST.fullmatch(text):
            return self._digest(text)
        if field in _PLACES and not (field == "to" and of is facts.ExchangeHeld):
            return self.name(text, _PLACES[field])
        if field in _KEYS or field == "to":
            return self.stream(text)
        if field.endswith(("_id", "_of")) or field in {"id", "answers", "order", "root", "flow"}:
            return self.id(text)
        return ERASED_OBJECT if field in _SOURCES else _WITHHELD


@cache
def _open_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields of a kind that can hold other texts than words of the vocabulary."""
    hints = get_type_hints(kind)
    return tuple(field.name for field in msgspec.structs.fields(kind) if _is_open(hints[field.name]))


_CLOSED: Final[frozenset[object]] = frozenset({int, float, bool, type(None)})


def _is_open(hint: object) -> bool:
    if get_origin(hint) is Literal:
        return False
    return any(map(_is_open, get_args(hint))) if get_args(hint) else hint not in _CLOSED
