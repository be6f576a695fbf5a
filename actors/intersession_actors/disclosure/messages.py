"""Messages as a tool shows them: without secrets for strangers, and with long texts cut (HIST-4, HIST-5)."""

from collections.abc import Sequence
from typing import overload

import msgspec

from intersession_actors.disclosure.capping import cap
from intersession_actors.disclosure.redaction import redact_raw
from intersession_events.plain_json import JsonMapping, JsonObject


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller gets to see, and what was done to it. `bytes` is the compact UTF-8 JSON of `messages`."""

    messages: list[JsonObject]
    truncated: bool
    dropped: int
    content_truncated: bool
    content_redacted: bool
    bytes: int

    @property
    def first_id(self) -> str | None:
        """The id of the oldest message shown, to page back from."""
        return self.messages[0]["id"] if self.messages else None


def shown_messages(messages: Sequence[JsonMapping], *, redact: bool) -> Shown:
    """Return raw messages, oldest first, as a tool call may show them."""
    source = _Redacted(messages) if redact else None
    capped = cap(messages if source is None else source)
    return Shown(
        messages=capped.messages,
        truncated=capped.truncated,
        dropped=capped.dropped_messages,
        content_truncated=capped.content_truncated,
        content_redacted=source is not None and source.hidden_from(capped.dropped_messages),
        bytes=capped.bytes,
    )


class _Redacted(Sequence[JsonMapping]):
    """Messages with their secrets hidden, each when it is asked for: most of a long transcript never is."""

    def __init__(self, messages: Sequence[JsonMapping]) -> None:
        self._messages = messages
        self._hidden: set[int] = set()

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, at: int) -> JsonMapping: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[JsonMapping]: ...
    def __getitem__(self, at: int | slice) -> JsonMapping | Sequence[JsonMapping]:
        if isinstance(at, slice):
            return [self[index] for index in range(*at.indices(len(self)))]
        shown, hidden = redact_raw(self._messages[at])
        if hidden:
            self._hidden.add(at)
        return shown

    def hidden_from(self, start: int) -> bool:
        """Whether a secret was hidden in a message from an index on."""
        return any(at >= start for at in self._hidden)
