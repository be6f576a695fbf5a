"""Messages as a tool shows them: without secrets for strangers, and with long texts cut (HIST-4, HIST-5)."""

from collections.abc import Sequence
from typing import overload

import msgspec

from intersession_actors.rules.disclosure.capping import Capped, cap
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_events.basics.plain_json import JsonMapping


def shown_messages(messages: Sequence[JsonMapping], *, redact: bool) -> Capped:
    """Return raw messages, oldest first, as a tool call may show them."""
    if not redact:
        return cap(messages)
    source = _Redacted(messages)
    capped = cap(source)
    return msgspec.structs.replace(capped, content_redacted=source.hidden_from(capped.dropped))


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
