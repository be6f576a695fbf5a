"""What the send policy said of a session's words at a place, and what would have let them out. The policy is asked again."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from intersession_actors.config import SendPolicy
from intersession_actors.explaining.explanation import Input, Instead
from intersession_actors.explaining.settings import InForce
from intersession_actors.policy import Speaker, Verdict, judge_send
from intersession_actors.service import Reader
from intersession_events.facts import SessionImported, SessionPatched
from intersession_events.ids import session_stream
from intersession_events.keys import SessionKey
from intersession_projections.spans import Span, backwards

_OVERRIDE = "sendPolicy"
_POLICY = "session.sendPolicy"


class Speaking(NamedTuple):
    """The question to the policy, its answer, and what it looked at."""

    policy: SendPolicy
    speaker: Speaker
    verdict: Verdict
    inputs: tuple[Input, ...]


def said_by_policy(
    reader: Reader, in_force: InForce, key: str, channel: str | None, position: int
) -> Speaking:
    """Ask the send policy of a place for a session's words, as the session stood there."""
    session = in_force.at(position).session
    row = reader.sessions.get(key, position)
    override = None if row is None else row.send_policy
    speaker = Speaker(
        key=SessionKey.recorded(key, main_key=session.main_key),
        channel=channel or (None if row is None else row.channel or row.last_channel),
        chat_type=None if row is None else row.chat_type,
        override=override,
    )
    verdict = judge_send(session.send_policy, speaker)
    set_at = None if override is None else _set_at(reader, key, position)
    inputs = (
        Input(name="session", value=key, set_by="log"),
        Input(name="channel", value=speaker.channel, set_by="session"),
        Input(name=_OVERRIDE, value=override, set_by="session", position=set_at),
        in_force.setting(_POLICY, position),
    )
    return Speaking(session.send_policy, speaker, verdict, inputs)


def what_would_let_out(speaking: Speaking) -> tuple[Instead, ...]:
    """Return which single changes of the policy, or of the session's own setting, would let the words out."""
    return tuple(_lets_out(speaking))


def _lets_out(speaking: Speaking) -> Iterator[Instead]:
    policy, speaker = speaking.policy, speaking.speaker
    for override in ("allow", None):
        if speaker.override != override and judge_send(policy, replace(speaker, override=override)).allowed:
            what = "is allow" if override else "is cleared"
            yield Instead(
                change=f"the session's own sendPolicy {what}",
                verdict="allow",
                setting=_OVERRIDE,
                value=override,
            )
    for at, rule in enumerate(policy.rules):
        without = replace(policy, rules=policy.rules[:at] + policy.rules[at + 1 :])
        if rule.action == "deny" and judge_send(without, speaker).allowed:
            name = f"{_POLICY}.rules[{at}]"
            yield Instead(change=f"{name} is not there", verdict="allow", setting=name)
    if policy.default == "deny" and judge_send(replace(policy, default="allow"), speaker).allowed:
        name = f"{_POLICY}.default"
        yield Instead(change=f"{name} is allow", verdict="allow", setting=name, value="allow")


def _set_at(reader: Reader, key: str, position: int) -> int | None:
    """Return where a session's own setting was last changed before a place."""
    for recorded in backwards(reader.log, Span(to=position), session_stream(key)):
        match recorded.event:
            case SessionPatched(values=values) if _OVERRIDE in values:
                return recorded.position
            case SessionImported(send_policy=str()):
                return recorded.position
            case _:
                pass
    return None
