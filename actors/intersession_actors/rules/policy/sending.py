"""Whether a session's texts may go outside, and whether a reply-back loop follows a send. Pure (POL-1, POL-2, LOOP-4)."""

from collections.abc import Collection
from typing import Final, Literal, NamedTuple

import msgspec

from intersession_actors.rules.config.session import SendAction, SendMatch, SendRule
from intersession_actors.rules.errors import Judgement, Known, Question
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import ChatType, LoopEnd

_COMMANDS: Final[dict[str, Literal["allow", "deny", "inherit"]]] = {
    "/send on": "allow",
    "/send off": "deny",
    "/send inherit": "inherit",
}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The send policy's verdict, and its rule; `judged` has the question and inputs."""

    action: SendAction
    rule: str
    judged: Judgement | None = None

    @property
    def allowed(self) -> bool:
        """Whether the text may go out."""
        return self.action == "allow"


class Speak(Question, frozen=True, kw_only=True):
    """Send texts of a session outside."""

    key: str


class Speech(Known, frozen=True, kw_only=True):
    """The inputs of that judgement: the policy, and the session's state.

    `channel` is where the words would go, else the channel recorded on the session, else its `lastChannel`; what is
    None is read from the key. `override` is the session's own setting (POL-2).
    """

    channel: str | None = None
    chat_type: ChatType | None = None
    override: SendAction | None = None
    default: SendAction | None = None
    rules: tuple[SendRule, ...] = ()


def judge_send(asked: Speak, known: Speech) -> Verdict:
    """Decide whether a session's texts may go out.

    The session's own setting, else any rule that denies, else any that allows, else the default, else allow:
    so the order of the rules does not matter.
    """
    action, rule = _said(asked, known)
    return Verdict(action=action, rule=rule, judged=Judgement(asked, known))


def _said(asked: Speak, known: Speech) -> tuple[SendAction, str]:
    if known.override is not None:
        return known.override, f"the session's own sendPolicy: {known.override}"
    key = SessionKey.recorded(asked.key)
    matching: list[tuple[SendAction, str]] = [
        (rule.action, f"session.sendPolicy.rules[{index}]: {rule.action} {_described(rule.match)}")
        for index, rule in enumerate(known.rules)
        if _matches(rule.match, key, known)
    ]
    if matching:
        return next((item for item in matching if item[0] == "deny"), matching[0])
    if known.default is not None:
        return known.default, f"session.sendPolicy.default: {known.default}"
    return "allow", "no rule of session.sendPolicy matches: allow"


def why_no_loop(one_way: Collection[str], requester: SessionKey | None, target: SessionKey) -> LoopEnd | None:
    """Return why no loop follows a send; None if one does. `one_way` are the kinds of sessions that have none."""
    if requester is None:
        return "no_requester"
    for key in (requester, target):
        if key.kind in one_way or (key.is_subagent and "subagent" in one_way):
            return "one_way"
    return None


def parse_send_command(text: str) -> Literal["allow", "deny", "inherit"] | None:
    """Return the send-policy command in an owner's message; None if it is text (POL-2).

    The message has to be the command and nothing else. Ask only for a message of a person who is an owner: from
    anybody else, and from a session, the same words are text.
    """
    return _COMMANDS.get(text)


class ApprovalCommand(NamedTuple):
    """An owner's word on a held tool call (ASK-3)."""

    hold_id: str
    approves: bool
    text: str | None = None


def parse_approval(text: str) -> ApprovalCommand | None:
    """Return the release in an owner's message, `/approve ID` or `/deny ID REASON`; None if it is text (ASK-3)."""
    word, _, rest = text.strip().partition(" ")
    hold_id, _, reason = rest.strip().partition(" ")
    if word not in {"/approve", "/deny"} or not hold_id:
        return None
    reason = reason.strip()
    if word == "/approve":
        return None if reason else ApprovalCommand(hold_id, approves=True)
    return ApprovalCommand(hold_id, approves=False, text=reason or None)


def _matches(match: SendMatch, key: SessionKey, known: Speech) -> bool:
    channel = known.channel or key.channel
    whole = _folded(str(key))
    return all(
        (
            match.channel is None or (channel is not None and _folded(channel) == _folded(match.channel)),
            match.chat_type is None or (known.chat_type or key.chat_type) == match.chat_type,
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
