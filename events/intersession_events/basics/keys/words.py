"""The words of session keys: which texts are ids, names and numbers, and what a refusal says. Pure (KEY-6)."""

import re
import unicodedata
from typing import Final

from intersession_events.basics.errors import InvalidKey

MAX_KEY_CHARACTERS: Final = 512
RESERVED_WORDS: Final = frozenset({"global", "unknown"})
"""Values that name no session and never will (KEY-4)."""
WHITE_SPACE: Final = " \t\r\n"
"""The characters that are trimmed from a typed key; `str.strip()` would trim more."""

_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_SEGMENT: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SESSION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NUMBER: Final = re.compile(r"[0-9]+")
# Words with a place of their own in the grammar are neither names nor channels.
_GRAMMAR_WORDS: Final = RESERVED_WORDS | frozenset(
    "agent subagent acp main cron hook node run thread topic direct group channel".split()  # noqa: SIM905
)
# Spaces, controls, invisible format characters and lone surrogates are in no id.
_UNFIT: Final = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})


# Letters and marks that show nothing: fillers, joiners of marks, selectors of variants, the blank of Braille.
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def fold(text: str) -> str:
    """Fold ASCII case and nothing else: `lower` and `casefold` turn other letters into ASCII ones."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


def is_slug(folded: str) -> bool:
    """Whether a text can be an agent's id or an account."""
    return _SLUG.fullmatch(folded) is not None


def is_name(folded: str) -> bool:
    """Whether a text can name a session or a channel: a slug without another meaning."""
    return is_slug(folded) and folded not in _GRAMMAR_WORDS and not folded.startswith("node-")


def is_node(folded: str) -> bool:
    """Whether a text is `node-<nodeId>`."""
    return folded.startswith("node-") and is_segment(folded.removeprefix("node-"))


def is_segment(folded: str) -> bool:
    """Whether a text can be the id of a cron job or of a run of it, or a part of a hook's name."""
    return _SEGMENT.fullmatch(folded) is not None


def is_uuid(folded: str) -> bool:
    """Whether a text is a UUID as we write it; `uuid.UUID` also reads braces and `urn:`."""
    return _UUID.fullmatch(folded) is not None


def is_number(text: str) -> bool:
    """Whether a text can be the number of a topic."""
    return _NUMBER.fullmatch(text) is not None


def is_opaque_id(text: str) -> bool:
    """Whether a text can be the id of a peer, a group or a thread: assigned, visible characters, in composed form (NFC).

    What looks the same is the same then: no second name for a session is made of what nobody sees, or sees twice alike.
    """
    return was_opaque_id(text) and (
        text.isascii()
        or (text.isprintable() and _UNSEEN.search(text) is None and unicodedata.is_normalized("NFC", text))
    )


def was_opaque_id(text: str) -> bool:
    """Whether a text can be such an id in imported data."""
    if text.isascii():
        return text != "" and text.isprintable() and " " not in text
    return not any(unicodedata.category(character) in _UNFIT for character in text)


def is_session_id(text: str) -> bool:
    """Whether a text can be a `sessionId`, ours or an imported one (KEY-5)."""
    return _SESSION_ID.fullmatch(text) is not None


def is_token(text: str) -> bool:
    """Whether a text is a bare word, well formed whether or not it names anything (KEY-6)."""
    return _TOKEN.fullmatch(text) is not None


def check_length(text: str) -> None:
    """Refuse a text that is too long, before other checks read it.

    Raises:
        InvalidKey: more than 512 characters.
    """
    if len(text) > MAX_KEY_CHARACTERS:
        raise InvalidKey(f"{len(text)} characters are too long for a key, use at most {MAX_KEY_CHARACTERS}")


def invalid_key(text: str, reason: str) -> InvalidKey:
    """Return the refusal of a text. It quotes the text unless that could steer the terminal or page that shows it."""
    return InvalidKey(f"{shown(text)} is no session key: {reason}; a key looks like agent:<agentId>:main")


def shown(text: str) -> str:
    """Quote a text for a message; leave it out if it could steer the terminal or page that shows it."""
    return f"'{text}'" if text.isprintable() else "what was given"
