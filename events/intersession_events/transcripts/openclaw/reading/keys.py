"""Turns the keys of an OpenClaw store into ours (IMP-1); a key that fits no rule becomes a named key."""

import hashlib
import re
from typing import Final

from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.transcripts.openclaw.reading.state import Settings

_RUN: Final = re.compile(r"(?P<job>(?:.*:)?cron:[^:]+):run:[^:]+")
_WHATSAPP_GROUP: Final = "@g.us"
_NAME_LENGTH: Final = 64
_DIGEST_LENGTH: Final = 12


def canonical(original: str, *, agent: str, channel: str | None, settings: Settings) -> SessionKey | None:
    """Return the key that a key of a store means, or None if no rule fits.

    `agent` is the one whose store it is in, `channel` the entry's: older group keys don't name theirs.
    """
    text = original.strip()
    folded = text.lower()
    if folded == "global":
        return SessionKey.main(settings.default_agent, settings.main_key)
    if folded == "unknown":
        return None
    if not folded.startswith("agent:"):
        text = f"agent:{agent}:{_unprefixed(text, channel)}"
    job = _RUN.fullmatch(text)
    if job is not None:
        text = job["job"]
    for spelling in (text, re.sub(r":dm:", ":direct:", text, count=1, flags=re.IGNORECASE)):
        try:
            return SessionKey.recorded(spelling, main_key=settings.main_key)
        except InvalidKey:
            continue
    return None


def mentioned(original: str, settings: Settings) -> str:
    """Return the canonical key for a key in a transcript, a tool's result or a source; the key itself if no rule fits."""
    key = canonical(original, agent=settings.default_agent, channel=None, settings=settings)
    return original if key is None else str(key)


def is_run_alias(original: str) -> bool:
    """Whether a key is an alias for one run of a cron job."""
    return _RUN.fullmatch(original.strip()) is not None


def kept_aside(agent: str, prefix: str, name: str) -> SessionKey:
    """Return the named key `<prefix>-<name>`, shortened by a digest where a name can't be that long or so spelled."""
    word = re.sub(r"[^a-z0-9_-]", "-", name.lower())
    whole = f"{prefix}-{word}"
    if word != name or len(whole) > _NAME_LENGTH:
        digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
        whole = f"{whole[: _NAME_LENGTH - _DIGEST_LENGTH - 1]}-{digest}"
    return SessionKey.named(agent, whole)


def _unprefixed(text: str, channel: str | None) -> str:
    """Return what follows the agent in a key from before keys named their agent."""
    folded = text.lower()
    if folded.startswith(("group:", "channel:")) and channel:
        return f"{channel}:{text}"
    if ":" not in text and folded.endswith(_WHATSAPP_GROUP):
        return f"whatsapp:group:{text}"
    return text
