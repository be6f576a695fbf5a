"""Redacted editions of a bundle: what each withholds of a row, and what its reader can still prove of it. Pure (BUNDLE-20).

A row with something to hide loses its salt, and keeps its digest and its hash: the digest is of salt and payload, so nobody can
guess the payload by it.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from intersession_actors.hindsight.bundling.pseudonyms import Pseudonyms
from intersession_actors.hindsight.bundling.wanted import Redact
from intersession_actors.rules.disclosure.events import hidden_event
from intersession_actors.rules.disclosure.redaction import redact_text, redact_value
from intersession_actors.rules.disclosure.secret_names import listed
from intersession_events import facts
from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_object, map_strings
from intersession_events.copies.bundles.edition import Edited, Withheld
from intersession_events.log.row_state import Envelope, as_state, opened, payload_in
from intersession_events.log.sql import Row

WITHHELD: Final = "[withheld]"
"""What is read where an edition leaves out a text."""


EDITIONS: Final[Mapping[str, str]] = {
    "secrets": "Secrets are masked. What a row says in which one was masked is its issuer's word; all else is proven.",
    "words": "What was said is withheld. That something was said, when, by whom and to whom is proven.",
    "people": (
        "Names of people, chats and sessions are replaced, and what was said is withheld. The hash and the place of each event are "
        "proven; what stands there of it is its issuer's word."
    ),
}
"""What each redacted edition withholds, and what is proven all the same."""


class Edition:
    """A redacted edition of rows. That of `people` is told all of them before it edits any."""

    def __init__(self, redacted: Redact) -> None:
        self.redacted = redacted
        self._edit: Callable[[Row], Edited] = _without_secrets if redacted == "secrets" else _without_words
        self._names = Pseudonyms() if redacted == "people" else None

    @property
    def renames(self) -> bool:
        """Whether it has pseudonyms."""
        return self._names is not None

    def note(self, row: Row) -> None:
        """Learn whom a row names."""
        if self._names is not None and (event := _event(row[3], row[4])) is not None:
            self._names.note(row[1], event)

    def edited(self, row: Row) -> Edited:
        """Return a row without what the edition withholds."""
        if self._names is not None:
            return _without_people(row, self._names)
        # What authorises an erasure stays as it was: without it, nothing may stand in the place of what was erased.
        return Edited(row) if row[3] == facts.Erased.topic else self._edit(row)

    def id(self, name: str) -> str:
        """Return an id, as the rows have it."""
        return name if self._names is None else self._names.id(name)

    def value(self, value: JsonObject) -> JsonObject:
        """Return a JSON object that stands beside the rows, such as a question or the settings, without what is withheld."""
        shown = redact_value(value)[0]
        if self._names is not None:
            shown = self._names.value(shown)
        elif self.redacted == "words":
            shown = _without_sayings(shown)
        return shown if is_object(shown) else {}


_STRUCTURE: Final = listed(
    "accountId agent agentId at by callId channel chatType checkpoint code credential digest door event eventId flow from hash id key keysDigest "
    "kind label logId messageId model person position purpose redact requester requesterSessionKey role route run runId session "
    "sessionId sessionKey sha256 since spawnId state status stream streams target targets time to tool topic until verb verdict via what who settings"
)
"""The fields of questions and answers that hold no words: of any other the texts are withheld."""


def _without_sayings(value: JsonValue) -> JsonValue:
    def change(name: str | None, text: str) -> str:
        if name not in _STRUCTURE or not text:
            return WITHHELD if text else text
        _, bracket, sender = text.removesuffix(")").rpartition(" (")
        if bracket:  # a person by name and id, as stories call them: a name is a word
            return sender
        return WITHHELD if name == "person" and ":" not in text else text

    # All below the settings is the configuration's, which nobody says.
    return map_strings(value, change, lambda parent, key: parent if parent == "settings" else key)


def _event(topic: str, state: bytes) -> facts.Event | None:
    """Return what stands in a row; None for an event of a later version, of which nobody knows what it says."""
    try:
        return facts.decode(topic, payload_in(state) or b"")
    except (CorruptEvent, UnknownTopic):
        return None


def _changed(row: Row, payload: bytes, withheld: Withheld) -> Edited:
    position, stream, version, topic, state = row
    if payload_in(state) == payload:
        return Edited(row)
    left = msgspec.structs.replace(
        opened(state, where=(stream, version)), apart=None, data=msgspec.Raw(payload), salt=""
    )
    return Edited((position, stream, version, topic, as_state(left)), withheld)


def _without_secrets(row: Row) -> Edited:
    return _changed(row, _masked(row[3], row[4]), "secrets")


def _masked(topic: str, state: bytes) -> bytes:
    event, payload = _event(topic, state), payload_in(state) or b""
    if event is None:
        return b"{}"
    hidden = hidden_event(event)
    shown = payload if hidden is event else facts.encode(hidden)
    values: object = msgspec.json.decode(shown)
    masked = _strings_masked(values)
    return shown if masked == values else msgspec.json.encode(masked, order="sorted")


def _strings_masked(value: object) -> JsonValue:
    """Mask secrets in labels, names and keys as well, which nobody says."""
    return map_strings(value, lambda _, text: _hidden(text))


@lru_cache(16_384)
def _hidden(text: str) -> str:
    return redact_text(text)[0] if text else text


def _without_words(row: Row) -> Edited:
    event = _event(row[3], row[4])
    if event is None:
        return _changed(row, b"{}", "words")
    left = _unnamed(facts.unsaid(event))
    payload = facts.encode(left)
    masked = _strings_masked(msgspec.json.decode(payload))
    is_left = left == facts.unsaid(event)
    data = msgspec.json.encode(masked, order="sorted")
    return _changed(row, data, "words" if is_left and data == payload else "secrets")


def _unnamed(event: facts.Event) -> facts.Event:
    """Return an event without texts that an erasure leaves, because they are of its structure: names of files, summaries."""
    match event:
        case facts.SpawnAccepted():
            files = event.attachments
            if files is not None:
                blank = tuple(facts.AttachedFile(name=WITHHELD, bytes=0, sha256="") for _ in files.files)
                event = msgspec.structs.replace(
                    event, attachments=msgspec.structs.replace(files, files=blank)
                )
            if event.thread is not None:
                event = msgspec.structs.replace(
                    event, thread=msgspec.structs.replace(event.thread, title=WITHHELD)
                )
            return (
                event if not event.given_summary else msgspec.structs.replace(event, given_summary=WITHHELD)
            )
        case facts.TranscriptGiven() if event.summary:
            return msgspec.structs.replace(event, summary=WITHHELD)
        case facts.AttachmentRemovalFailed():
            return msgspec.structs.replace(event, error=WITHHELD)
        case _:
            return event


def _without_people(row: Row, names: Pseudonyms) -> Edited:
    position, stream, version, topic, state = row
    event = _event(topic, state)
    payload = b"{}" if event is None else facts.encode(names.event(_unnamed(facts.unsaid(event))))
    envelope = opened(state, where=(stream, version))
    left = Envelope(
        causation=None if envelope.causation is None else names.id(envelope.causation),
        correlation=None if envelope.correlation is None else names.id(envelope.correlation),
        data=msgspec.Raw(payload),
        digest="",
        epoch=envelope.epoch,
        hash=envelope.hash,
        id=names.id(envelope.id),
        prev=envelope.prev,
        salt="",
        time=envelope.time,
    )
    return Edited((position, names.stream(stream), version, topic, as_state(left)), "person")
