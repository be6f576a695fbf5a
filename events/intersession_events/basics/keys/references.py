"""What callers type for a session, and what they are shown of its key: short forms, words and ids (KEY-2 to KEY-6). Pure."""

import re
from typing import Final, Literal

import msgspec

from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey, read_key, valid_agent_id
from intersession_events.basics.keys.words import (
    RESERVED_WORDS,
    WHITE_SPACE,
    check_length,
    fold,
    invalid_key,
    is_node,
    is_opaque_id,
    is_session_id,
    is_token,
    shown,
)

Scope = Literal["per-sender", "global"]


_OF_ANOTHER_LOG: Final = re.compile(r"^[a-z]+://|[:/@#]agent:[a-z0-9]")
"""How callers try to name a session of another log: the URL of a store, or a word before a whole key."""


class KeyReference(msgspec.Struct, frozen=True):
    """The input is a session key."""

    key: SessionKey


class IdReference(msgspec.Struct, frozen=True):
    """The input may be a `sessionId`: look it up; a missing one is not visible (KEY-5)."""

    text: str


class LookupMiss(msgspec.Struct, frozen=True):
    """The input is well formed but can't name any session (KEY-4, KEY-6)."""

    text: str


Reference = KeyReference | IdReference | LookupMiss


def refer(
    text: str, *, requester_agent: str | None, default_agent: str, main_key: str, scope: Scope
) -> Reference:
    """Return what a caller's reference to a session means: a key, an id, or nothing (KEY-2 to KEY-6).

    `requester_agent` is the agent of the calling session; without one (None) short forms belong to `default_agent`.

    Raises:
        InvalidKey: the text is neither a key nor anything to look up.
    """
    check_length(text)
    typed = text.strip(WHITE_SPACE)
    home = default_agent if requester_agent is None else requester_agent
    folded = fold(typed)
    if folded == "main":
        return KeyReference(SessionKey.main(default_agent if scope == "global" else home, main_key))
    if folded in RESERVED_WORDS:
        return LookupMiss(typed)
    if _is_key(folded):
        if folded.startswith("agent:"):
            key = SessionKey.parse(text, main_key=main_key)
        else:
            key = read_key(text, home, typed.split(":"), fold(main_key), is_opaque_id)
        if scope == "global" and key.is_main:
            key = SessionKey.main(default_agent, main_key)
        return KeyReference(key)
    if is_session_id(typed):
        return IdReference(typed)
    if is_token(typed):
        return LookupMiss(typed)
    if _OF_ANOTHER_LOG.search(folded):
        raise invalid_key(
            text,
            "a key names a session of this log, and logs are separate: nothing is sent from one to another; ask the "
            "gateway of that log",
        )
    raise invalid_key(text, "it is neither a key nor a session id")


def display(
    key: SessionKey,
    *,
    requester_agent: str | None,
    default_agent: str | None = None,
    main_key: str = "main",
    scope: Scope = "per-sender",
) -> str:
    """Return a key as it is shown to a requester, who can type it back (KEY-2, KEY-3).

    The requester's own agent's main session is `main`, and its cron, hook and node sessions go without the agent;
    everything else is shown whole. Without a requester, `default_agent` is the agent whose keys are short.
    """
    is_main = key.is_main or (key.family == "named" and key.rest == main_key)
    if is_main and scope == "global":
        return "main"
    if key.agent_id != (default_agent if requester_agent is None else requester_agent):
        return str(key)
    if is_main:
        return "main"
    return key.rest if key.family in {"cron", "hook", "node"} else str(key)


def parse_agent_id(text: str) -> str:
    """Return an agent id as typed by a caller, trimmed and folded as a key's would be.

    Raises:
        InvalidKey: the text is no agent id.
    """
    check_length(text)
    agent_id = fold(text.strip(WHITE_SPACE))
    if not valid_agent_id(agent_id):
        raise InvalidKey(f"{shown(text)} is no agent id; it has to be of the form [a-z0-9][a-z0-9_-]{{0,63}}")
    return agent_id


def _is_key(folded: str) -> bool:
    """Whether a text claims to be a key, whole or in one of the short forms of KEY-3."""
    head, colon, tail = folded.partition(":")
    if not colon:
        return is_node(folded)
    return head in {"agent", "cron", "hook"} or is_node(head) or tail.startswith(("group:", "channel:"))
