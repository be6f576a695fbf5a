"""The URL for a channel's texts: `{to}`, `{thread}` and `{account}` are filled in for each.

They may stand behind the host only, and take only characters that mean nothing in any part of a URL, so that no chat id
leads a text to another host or path, however often the URL is decoded on its way.
"""

import re
from typing import Final, NamedTuple
from urllib.parse import quote

from intersession_actors.outside.channels.channels import DeliveryRefused, Outbound

SCHEMES: Final = frozenset({"http", "https"})
"""Of the URLs that a webhook posts to; all others are Apprise's."""
PLACES: Final = ("to", "thread", "account")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)
_PLACE: Final = re.compile(r"\{([^{}]*)\}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_:@+!=~$.-]{0,256}")
_SAMPLES: Final = (
    "1234567890", "C0123456789", "general", "+15551234567", "ann@example.com", "!room:example.com"
)  # fmt: skip


class BadChannelUrl(ValueError):
    """A channel's URL is invalid; becomes a `ConfigError`. It shows only the scheme and host."""


class ChannelUrl(NamedTuple):
    """A well-formed URL with placeholders. Never shown: it holds secrets."""

    text: str

    @property
    def scheme(self) -> str:
        """The scheme of the URL, in lower case."""
        return self.text.partition("://")[0].lower()

    @property
    def places(self) -> tuple[str, ...]:
        """The names of the placeholders that are filled in, in order."""
        return tuple(_PLACE.findall(self.text))

    def for_text(self, outbound: Outbound) -> str:
        """Return the URL for a text.

        Raises:
            DeliveryRefused: the chat, thread or account has a character that could mean something in a URL.
        """
        return self.filled(
            {"to": outbound.to, "thread": outbound.thread or "", "account": outbound.account or ""}
        )

    def filled(self, values: dict[str, str]) -> str:
        """Return the URL with its placeholders filled in.

        Raises:
            DeliveryRefused: a value has a character that could mean something in a URL.
        """
        for place in self.places:
            value = values[place]
            if _PLAIN.fullmatch(value) is None or (value and not value.strip(".")):
                raise DeliveryRefused(
                    f"{place} {value[:64]!r} can't stand in the channel's URL: letters, digits and _.:@+!=~$- can"
                )
        return _PLACE.sub(lambda found: quote(values[found[1]], safe=""), self.text)

    def samples(self) -> tuple[str, ...]:
        """Return the URL with made-up chats, to check it before there is a text."""
        if not self.places:
            return (self.text,)
        return tuple(self.filled(dict.fromkeys(PLACES, sample)) for sample in _SAMPLES)

    def __repr__(self) -> str:
        return f"ChannelUrl({self.scheme}://…)"


def channel_url(text: str) -> ChannelUrl:
    """Parse a URL.

    Raises:
        BadChannelUrl: it is not.
    """
    scheme, separator, rest = text.partition("://")
    if not separator or _SCHEME.fullmatch(scheme) is None:
        raise BadChannelUrl(
            "is no URL; give one with a scheme, such as https://… or tgram://${TELEGRAM_TOKEN}/{to}"
        )
    if not text.isascii() or not text.isprintable() or re.search(r"[\s\\]", text):
        raise BadChannelUrl(
            "has characters that no URL has; write them percent-encoded, and the host as xn--…"
        )
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "{" in host or "}" in host:
        raise BadChannelUrl(
            "has a place to fill in before its path; {to} and {thread} may stand behind the host only"
        )
    unknown = [place for place in _PLACE.findall(rest) if place not in PLACES]
    if unknown or re.search(r"[{}]", _PLACE.sub("", rest)):
        raise BadChannelUrl("has braces that are no {to}, {thread} or {account}; write braces as %7B and %7D")
    return ChannelUrl(text)
