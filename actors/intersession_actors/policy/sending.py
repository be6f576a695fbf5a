"""May a session's words go outside? The send policy: pure (POL-1, POL-2)."""

from typing import Final, Literal

import msgspec

from intersession_actors.config import SendAction, SendMatch, SendPolicy
from intersession_events.facts import ChatType
from intersession_events.keys import SessionKey

_COMMANDS: Final[dict[str, Literal["allow", "deny", "inherit"]]] = {
    "/send on": "allow",
    "/send off": "deny",
    "/send inherit": "inherit",
}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the send policy says, and which rule said it."""

    action: SendAction
    rule: str

    @property
    def allowed(self) -> bool:
        """Whether the words may go out."""
        return self.action == "allow"


class Speaker(msgspec.Struct, frozen=True, kw_only=True):
    """The session whose words are to go out.

    `channel` is where they would go, else the channel recorded on the session, else its `lastChannel`; what is
    None is read from the key. `override` is the session's own setting (POL-2).
    """

    key: SessionKey
    channel: str | None = None
    chat_type: ChatType | None = None
    override: SendAction | None = None


def judge_send(policy: SendPolicy, speaker: Speaker) -> Verdict:
    """Say whether a session's words may go out.

    The session's own setting, else any rule that denies, else any that allows, else the default, else allow:
    so the order of the rules does not matter.
    """
    if speaker.override is not None:
        return Verdict(action=speaker.override, rule=f"the session's own sendPolicy: {speaker.override}")
    matching: list[tuple[SendAction, str]] = [
        (rule.action, f"session.sendPolicy.rules[{index}]: {rule.action} {_described(rule.match)}")
        for index, rule in enumerate(policy.rules)
        if _matches(rule.match, speaker)
    ]
    if matching:
        action, rule = next((item for item in matching if item[0] == "deny"), matching[0])
        return Verdict(action=action, rule=rule)
    if policy.default is not None:
        return Verdict(action=policy.default, rule=f"session.sendPolicy.default: {policy.default}")
    return Verdict(action="allow", rule="no rule of session.sendPolicy matches: allow")


def parse_send_command(text: str) -> Literal["allow", "deny", "inherit"] | None:
    """Return what an owner's message asks of the send policy; None where it is text (POL-2).

    The message has to be the command and nothing else. Ask only for a message of a person who is an owner: from
    anybody else, and from a session, the same words are text.
    """
    return _COMMANDS.get(text)


def _matches(match: SendMatch, speaker: Speaker) -> bool:
    key = speaker.key
    channel = speaker.channel or key.channel
    whole = _folded(str(key))
    return all(
        (
            match.channel is None or (channel is not None and _folded(channel) == _folded(match.channel)),
            match.chat_type is None or (speaker.chat_type or key.chat_type) == match.chat_type,
            match.key_prefix is None or _begins(match.key_prefix, whole, _folded(key.rest)),
            match.raw_key_prefix is None or _begins(match.raw_key_prefix, whole),
        )
    )


def _begins(prefix: str, *texts: str) -> bool:
    return any(text.startswith(_folded(prefix)) for text in texts)


def _folded(text: str) -> str:
    """Fold the ASCII case only: other alphabets have letters that fold into ASCII ones."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def _described(match: SendMatch) -> str:
    parts = {
        "channel": match.channel,
        "chatType": match.chat_type,
        "keyPrefix": match.key_prefix,
        "rawKeyPrefix": match.raw_key_prefix,
    }
    given = [f"{name} {value!r}" for name, value in parts.items() if value is not None]
    return " and ".join(given) or "everything"
