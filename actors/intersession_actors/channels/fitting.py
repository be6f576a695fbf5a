"""Makes a text fit a channel: escaped as the channel wants it, and no longer than it takes."""

from typing import Final

from intersession_actors.channels.channels import Channel

CUT: Final = "…"


def fitted(text: str, channel: Channel) -> tuple[str, int | None]:
    """Return a text as the channel takes it, and how many of its characters that is, if not all.

    It is cut before it is escaped: a cut through an escape sequence could undo it.
    """
    escape = channel.escape or _as_it_is
    whole = escape(text)
    if channel.max_chars is None or len(whole) <= channel.max_chars:
        return whole, None
    low, high = 0, min(len(text), channel.max_chars)
    while low < high:
        middle = (low + high + 1) // 2
        if len(escape(text[:middle] + CUT)) <= channel.max_chars:
            low = middle
        else:
            high = middle - 1
    return escape(text[:low] + CUT)[: channel.max_chars], low


def _as_it_is(text: str) -> str:
    return text
