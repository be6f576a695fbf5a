"""What a session key is: the one place that reads and writes whole keys (KEY-1, KEY-7, KEY-8). Pure and total.

A key is `agent:<agentId>:<rest>`. Only ASCII white space at the ends is trimmed and only the ASCII case of structural
parts is folded; whatever else is off makes a text no key, because a text that is repaired is a second name for
a session, and a second name is a second answer to "may I".
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, Literal

import msgspec

from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.words import (
    MAX_KEY_CHARACTERS,
    WHITE_SPACE,
    check_length,
    fold,
    invalid_key,
    is_name,
    is_node,
    is_number,
    is_opaque_id,
    is_segment,
    is_slug,
    is_uuid,
    shown,
    was_opaque_id,
)

Kind = Literal["main", "group", "cron", "hook", "node", "other"]
Family = Literal["main", "group", "channel", "direct", "cron", "hook", "node", "subagent", "acp", "named"]
Chat = Literal["direct", "group", "channel"]

IsId = Callable[[str], bool]

_REMEMBERED: Final = 4096
"""Keys that were read last are not read again: a list reads each of its keys several times."""
_CHATS: Final[dict[str, Chat]] = {"direct": "direct", "group": "group", "channel": "channel"}


class SessionKey(msgspec.Struct, frozen=True, kw_only=True):
    """The canonical name of a session. Made by `parse` and by the constructors here, nowhere else.

    `rest` is what follows the agent's id. `channel`, `account`, `peer` and `thread` are read from it where it has
    them, `suffix` is the word before the thread's id. Equal keys have equal texts, `str(key)`.

    Each constructor raises `InvalidKey` for a part that would be read as another part, or as none.
    """

    agent_id: str
    rest: str
    family: Family
    channel: str | None = None
    account: str | None = None
    peer: str | None = None
    thread: str | None = None
    suffix: Literal["thread", "topic"] | None = None

    def __str__(self) -> str:
        return f"agent:{self.agent_id}:{self.rest}"

    @property
    def kind(self) -> Kind:
        """The kind of session a list shows (KEY-7)."""
        match self.family:
            case "main":
                return "main" if self.is_main else "other"
            case "group" | "channel":
                return "group"
            case "cron" | "hook" | "node":
                return self.family
            case "direct" | "subagent" | "acp" | "named":
                return "other"

    @property
    def chat_type(self) -> Chat | None:
        """The type of the chat; None where the key does not say."""
        return _CHATS.get(self.family)

    @property
    def is_main(self) -> bool:
        """Whether this is the agent's main session itself, not a thread of it."""
        return self.family == "main" and self.thread is None

    @property
    def is_subagent(self) -> bool:
        """Whether this is the session of a spawned sub-agent."""
        return self.family == "subagent"

    @property
    def is_spawned(self) -> bool:
        """Whether this is the session of a child, whatever runs it: a sub-agent's, or one of an acp runtime (SPAWN-1)."""
        return self.family in {"subagent", "acp"}

    @staticmethod
    @lru_cache(maxsize=_REMEMBERED)
    def parse(text: str, *, main_key: str = "main") -> "SessionKey":
        """Return the key that a text names in full. `main` and the main key are one session (KEY-2).

        Raises:
            InvalidKey: the text is no full key.
        """
        return _parsed(text, main_key, is_opaque_id)

    @staticmethod
    @lru_cache(maxsize=_REMEMBERED)
    def recorded(text: str, *, main_key: str = "main") -> "SessionKey":
        """Return the key that a log, or a state directory, has recorded in full.

        It takes ids that nobody may type: another system lets some pass that can't be seen, or told apart.

        Raises:
            InvalidKey: the text is no full key.
        """
        return _parsed(text, main_key, was_opaque_id)

    @staticmethod
    @lru_cache(maxsize=_REMEMBERED)
    def main(agent_id: str, main_key: str = "main") -> "SessionKey":
        """Return an agent's main session."""
        if not valid_main_key(main_key):
            raise InvalidKey(
                f"{shown(main_key)} can't be a main key; use one word [a-z0-9][a-z0-9_-]{{0,63}}"
            )
        return _made(agent_id, main_key, "main", main_key)

    @staticmethod
    def group(agent_id: str, channel: str, group_id: str, thread: str | None = None) -> "SessionKey":
        """Return the session of a group, or of a thread in it."""
        return _chat(agent_id, "group", channel, None, group_id, thread)

    @staticmethod
    def channel_room(agent_id: str, channel: str, room: str, thread: str | None = None) -> "SessionKey":
        """Return the session of a channel's room, or of a thread in it."""
        return _chat(agent_id, "channel", channel, None, room, thread)

    @staticmethod
    def direct(
        agent_id: str, channel: str | None, account: str | None, peer: str, thread: str | None = None
    ) -> "SessionKey":
        """Return the session of a direct chat: with a peer, on a channel, on an account of ours there."""
        if channel is None and account is not None:
            raise InvalidKey(f"a direct chat on account {shown(account)} has no channel; name the channel")
        return _chat(agent_id, "direct", channel, account, peer, thread)

    @staticmethod
    def cron(agent_id: str, job_id: str, run: str | None = None) -> "SessionKey":
        """Return the session of a cron job, or of one run of it."""
        if ":" in job_id:
            raise invalid_key(job_id, "a cron job's id has no colon")
        return _made(agent_id, f"cron:{job_id}" if run is None else f"cron:{job_id}:run:{run}", "cron")

    @staticmethod
    def hook(agent_id: str, name: str) -> "SessionKey":
        """Return the session of a hook, by name or UUID."""
        return _made(agent_id, f"hook:{name}", "hook")

    @staticmethod
    def node(agent_id: str, node_id: str) -> "SessionKey":
        """Return the session of a node."""
        return _made(agent_id, f"node-{node_id}", "node")

    @staticmethod
    def subagent(agent_id: str, uuid: str) -> "SessionKey":
        """Return the session of a spawned sub-agent (SPAWN-6)."""
        return _made(agent_id, f"subagent:{uuid}", "subagent")

    @staticmethod
    def acp(agent_id: str, uuid: str) -> "SessionKey":
        """Return the session of a child that another runtime runs."""
        return _made(agent_id, f"acp:{uuid}", "acp")

    @staticmethod
    def named(agent_id: str, name: str) -> "SessionKey":
        """Return a session with a name of one word that means nothing else."""
        return _made(agent_id, name, "named")


def valid_agent_id(text: str) -> bool:
    """Whether a text is an agent id in its canonical form."""
    return is_slug(text)


def valid_main_key(text: str) -> bool:
    """Whether a text can be `session.mainKey` in its canonical form: `main`, or a word that means nothing else."""
    return text == "main" or is_name(text)


def _parsed(text: str, main_key: str, is_id: IsId) -> SessionKey:
    check_length(text)
    head, *segments = text.strip(WHITE_SPACE).split(":")
    if fold(head) != "agent":
        raise invalid_key(text, "it does not begin with agent:")
    agent_id = fold(segments[0]) if segments else ""
    if not valid_agent_id(agent_id):
        raise invalid_key(text, "the agent id is not of the form [a-z0-9][a-z0-9_-]{0,63}")
    return read_key(text, agent_id, segments[1:], fold(main_key), is_id)


def read_key(text: str, agent_id: str, segments: Sequence[str], main_key: str, is_id: IsId) -> SessionKey:
    """Return the key of the segments behind the agent id; `text` is the whole input, for a refusal.

    `is_id` says what the ids of chats may be.

    Raises:
        InvalidKey: the segments are of no known form, or the key would be too long.
    """
    key = _read_rest(text, agent_id, segments, main_key, is_id)
    if len(str(key)) > MAX_KEY_CHARACTERS:
        raise invalid_key(text, f"in full it has more than {MAX_KEY_CHARACTERS} characters")
    return key


def _read_rest(text: str, agent_id: str, segments: Sequence[str], main_key: str, is_id: IsId) -> SessionKey:
    folded = [fold(segment) for segment in segments]
    if not folded or "" in folded:
        raise invalid_key(text, "a part of it is empty")
    if "agent" in folded or "subagent" in folded[1:]:
        raise invalid_key(text, "there is a second agent: or subagent: in it")
    head, rest = folded[0], ":".join(folded)
    match folded:
        case [only] if only in {"main", main_key}:
            return SessionKey(agent_id=agent_id, rest=main_key, family="main")
        case ["subagent" | "acp", uuid] if is_uuid(uuid):
            return SessionKey(
                agent_id=agent_id, rest=rest, family="subagent" if head == "subagent" else "acp"
            )
        case ["cron", job] | ["cron", job, "run", _] if all(map(is_segment, (job, folded[-1]))):
            return SessionKey(agent_id=agent_id, rest=rest, family="cron")
        case ["hook", *names] if names and all(map(is_segment, names)):
            return SessionKey(agent_id=agent_id, rest=rest, family="hook")
        case [_] if is_node(head):
            return SessionKey(agent_id=agent_id, rest=rest, family="node")
        case [_] if is_name(head):
            return SessionKey(agent_id=agent_id, rest=rest, family="named")
        case _:
            return _read_chat(text, agent_id, segments, main_key, is_id)


def _read_chat(text: str, agent_id: str, segments: Sequence[str], main_key: str, is_id: IsId) -> SessionKey:
    """Return the key of a chat, with its thread or topic if it has one."""
    segments, suffix, thread = _split_thread(segments)
    family: Family
    channel: str | None = None
    account: str | None = None
    peer: str | None = None
    match [fold(segment) for segment in segments]:
        case [only] if only in {"main", main_key}:
            family, rest = "main", main_key
        case ["direct", _, *_]:
            family, peer = "direct", ":".join(segments[1:])
            rest = f"direct:{peer}"
        case [name, "direct" | "group" | "channel" as chat, _, *_] if is_name(name):
            family, channel, peer = _CHATS[chat], name, ":".join(segments[2:])
            rest = f"{channel}:{chat}:{peer}"
        case [name, ours, "direct", _, *_] if is_name(name) and is_slug(ours):
            family, channel, account, peer = "direct", name, ours, ":".join(segments[3:])
            rest = f"{channel}:{account}:direct:{peer}"
        case _:
            raise invalid_key(text, "what follows the agent id is of no known form")
    if not all(is_id(part) for part in (peer, thread) if part is not None):
        raise invalid_key(
            text,
            "an id in it has white space, control, invisible or unassigned characters, or is not in composed form (NFC)",
        )
    if thread is not None:
        rest = f"{rest}:{suffix}:{thread}"
    return SessionKey(
        agent_id=agent_id,
        rest=rest,
        family=family,
        channel=channel,
        account=account,
        peer=peer,
        thread=thread,
        suffix=suffix,
    )


def _split_thread(
    segments: Sequence[str],
) -> tuple[Sequence[str], Literal["thread", "topic"] | None, str | None]:
    """Split off the last `:thread:<id>` or `:topic:<n>`; what stands before it is at least one segment."""
    for at in range(len(segments) - 2, 0, -1):
        match fold(segments[at]):
            case "thread":
                return segments[:at], "thread", ":".join(segments[at + 1 :])
            case "topic" if at == len(segments) - 2 and is_number(segments[at + 1]):
                return segments[:at], "topic", segments[at + 1]
            case _:
                pass
    return segments, None, None


def _chat(  # noqa: PLR0917 - the parts of a key, in its order
    agent_id: str, chat: Chat, channel: str | None, account: str | None, peer: str, thread: str | None
) -> SessionKey:
    suffix = None if thread is None else "thread"
    parts = (channel, account, chat, peer, suffix, thread)
    key = _made(agent_id, ":".join(part for part in parts if part is not None), chat)
    read = (key.channel, key.account, key.peer, key.suffix, key.thread)
    if read != (fold(channel or "") or None, fold(account or "") or None, peer, suffix, thread):
        raise invalid_key(str(key), "a part of it would be read as another part; use other ids")
    return key


def _made(agent_id: str, rest: str, family: Family, main_key: str = "main") -> SessionKey:
    """Return the key made of these parts, if it reads back as just them."""
    key = SessionKey.parse(f"agent:{agent_id}:{rest}", main_key=main_key)
    if key.agent_id != fold(agent_id) or key.family != family or fold(key.rest) != fold(rest):
        raise invalid_key(f"agent:{agent_id}:{rest}", f"it would not be read as a {family} key")
    return key
