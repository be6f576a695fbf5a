"""Explains why a call was refused. The resolver and the policies are asked again, with the settings of that place."""

from collections.abc import Iterator
from itertools import combinations
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from intersession_actors.config import Config
from intersession_actors.errors import REFUSAL_CODES, RefusalCode, ToolRefused
from intersession_actors.explaining.explanation import Explanation, Input, Instead
from intersession_actors.explaining.rules import REFUSALS
from intersession_actors.explaining.settings import InForce
from intersession_actors.explaining.speaking import said_by_policy, what_would_let_out
from intersession_actors.explaining.starting import SPAWNING, explain_spawn_refused
from intersession_actors.policy import Operation
from intersession_actors.service import Reader, resolve_label, resolve_main, resolve_target
from intersession_events import facts
from intersession_events.errors import InvalidKey
from intersession_events.keys import SessionKey, parse_agent_id
from intersession_events.log import Recorded
from intersession_events.plain_json import JsonObject, JsonValue, is_object
from intersession_projections.spans import Span, backwards

_SENDS: Final[dict[str, Operation]] = {
    "sessions_send": "send",
    "sessions_history": "history",
    "sessions_spawn": "spawn",
}
_CLOSING: Final = (
    "tools.sessions.visibility",
    "tools.agentToAgent.enabled",
    "tools.agentToAgent.allow",
    "agents.defaults.sandbox.sessionToolsVisibility",
)
"""The settings that keep sessions closed, in the order in which they are tried."""
_NO_UUID: Final = "00000000-0000-0000-0000-000000000000"


class Refusal(NamedTuple):
    """A call that was refused: by which code, in which words, who called which tool with which arguments."""

    code: RefusalCode
    error: str | None
    requester: str | None
    tool: str
    arguments: JsonObject


def refusal_in(reader: Reader, recorded: Recorded) -> list[Refusal]:
    """Return the refusals that an event says: a receipt may say several, a tool's answer says one."""
    event = recorded.event
    match event:
        case facts.SendRefused():
            code = _known(event.code)
            return (
                []
                if code is None
                else [Refusal(code, None, event.requester, event.tool, {"sessionKey": event.target})]
            )
        case facts.AccessRecorded():
            return [
                Refusal(known, None, event.requester, event.tool, _arguments(event, target))
                for target, said in event.denied
                if (known := _known(said)) is not None
            ]
        case facts.MessageRecorded(message=message) if message.role == "toolResult":
            return _in_answer(reader, recorded, message)
        case _:
            return []


def explain_refusal(reader: Reader, in_force: InForce, recorded: Recorded, refusal: Refusal) -> Explanation:
    """Explain a refusal, as far as what the rule looked at is in the log."""
    inputs = (Input(name="requester", value=refusal.requester, set_by="call"), *_arguments_of(refusal))
    said = f"{refusal.tool} was refused ({refusal.code})"
    whole = REFUSALS[refusal.code].explains(recorded, "refusal", refusal.code, said, inputs)
    match refusal.code:
        case "limit" | "cycle" if isinstance(recorded.event, facts.SendRefused):
            return _of_guard(in_force, recorded, recorded.event, whole)
        case "forbidden" | "not_visible":
            return _of_access(reader, in_force, recorded, refusal, whole)
        case "policy_denied":
            return _of_policy(reader, in_force, recorded, refusal, whole)
        case code if code in SPAWNING:
            return explain_spawn_refused(
                reader,
                in_force,
                recorded.position,
                whole,
                requester=refusal.requester,
                arguments=refusal.arguments,
            )
        case _:
            return whole


def _known(code: str) -> RefusalCode | None:
    return next((known for known in REFUSAL_CODES if known == code), None)


def _arguments(event: facts.AccessRecorded, target: str) -> JsonObject:
    given = _object(event.filters)
    named = {"sessionKey", "key", "label", "agentId"} & given.keys()
    return given if named else {**given, "sessionKey": target}


def _in_answer(reader: Reader, recorded: Recorded, message: facts.Message) -> list[Refusal]:
    answer = _object(facts.text_of(message))
    said = answer.get("code")
    code = _known(said) if isinstance(said, str) else None
    if code is None or answer.get("status") not in {"error", "forbidden"}:
        return []
    error = answer.get("error")
    return [
        Refusal(
            code,
            error if isinstance(error, str) else None,
            recorded.stream.removeprefix("session:"),
            message.tool_name or "a tool",
            _called_with(reader, recorded, message.tool_call_id),
        )
    ]


def _called_with(reader: Reader, recorded: Recorded, call_id: str | None) -> JsonObject:
    """Return the arguments of the call that a tool's answer is to; it stands in the same run, shortly before."""
    for earlier in backwards(reader.log, Span(to=recorded.position), recorded.stream):
        event = earlier.event
        if isinstance(event, facts.RunStarted):
            break
        if isinstance(event, facts.MessageRecorded) and not isinstance(event.message.content, str):
            for block in event.message.content:
                if isinstance(block, facts.ToolCallBlock) and block.id == call_id:
                    return _object(block.arguments)
    return {}


def _object(source: str) -> JsonObject:
    try:
        value: JsonValue = msgspec.json.decode(source)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return {**value} if is_object(value) else {}


def _arguments_of(refusal: Refusal) -> Iterator[Input]:
    if refusal.error is not None:
        yield Input(name="error", value=refusal.error, set_by="log")
    for name in ("sessionKey", "key", "label", "agentId", "model", "thinking", "sandbox", "timeoutSeconds"):
        if name in refusal.arguments:
            yield Input(name=name, value=refusal.arguments[name], set_by="call")


def _of_guard(
    in_force: InForce, recorded: Recorded, event: facts.SendRefused, whole: Explanation
) -> Explanation:
    chain = Input(name="chain", value=[*event.chain], set_by="log")
    if event.code == "cycle":
        return replace(whole, inputs=(*whole.inputs, chain))
    setting = in_force.setting(event.limit, recorded.position)
    used = Input(name=f"{event.limit}.used", value=event.value, set_by="log")
    instead = Instead(
        change=f"{event.limit} is at least {event.value + 1}, or 0 for none",
        setting=event.limit,
        value=event.value + 1,
    )
    return replace(
        whole,
        text=f"{event.tool} was refused ({event.limit} is {event.allowed}, and the chain had used {event.value}): "
        f"{REFUSALS['limit'].says}.",
        inputs=(*whole.inputs, setting, used, chain),
        instead=(instead,),
    )


# --- what may be seen


def _of_access(
    reader: Reader, in_force: InForce, recorded: Recorded, refusal: Refusal, whole: Explanation
) -> Explanation:
    config = in_force.at(recorded.position)
    said = _asked_again(reader, config, recorded, refusal)
    settings = tuple(in_force.setting(name, recorded.position) for name in _CLOSING)
    if said != refusal.code:
        return replace(whole, inputs=(*whole.inputs, *settings), as_decided=None if said is None else False)
    instead = _what_would_open(reader, config, recorded, refusal)
    return replace(
        whole,
        inputs=(*whole.inputs, *settings),
        instead=instead or (Instead(change="a session that is there: no setting would show this one"),),
        as_decided=True,
    )


def _what_would_open(
    reader: Reader, config: Config, recorded: Recorded, refusal: Refusal
) -> tuple[Instead, ...]:
    """Return the smallest sets of settings that would have opened the session, each as one change."""
    for number in range(1, len(_CLOSING) + 1):
        found = [
            names
            for names in combinations(_CLOSING, number)
            if _asked_again(reader, _opened(config, names), recorded, refusal) is None
        ]
        if found:
            return tuple(
                Instead(
                    change=" and ".join(f"{name} is {_OPEN[name]}" for name in names),
                    verdict="allowed",
                    setting=names[0] if number == 1 else None,
                )
                for names in found
            )
    return ()


_OPEN: Final = {
    "tools.sessions.visibility": "all",
    "tools.agentToAgent.enabled": "true",
    "tools.agentToAgent.allow": "not given, or matches both agents",
    "agents.defaults.sandbox.sessionToolsVisibility": "all",
}


def _opened(config: Config, names: tuple[str, ...]) -> Config:
    tools, agents = config.tools, config.agents
    for name in names:
        match name:
            case "tools.sessions.visibility":
                tools = replace(tools, sessions=replace(tools.sessions, visibility="all"))
            case "tools.agentToAgent.enabled":
                tools = replace(tools, agent_to_agent=replace(tools.agent_to_agent, enabled=True))
            case "tools.agentToAgent.allow":
                tools = replace(tools, agent_to_agent=replace(tools.agent_to_agent, allow=None))
            case _:
                sandbox = replace(agents.defaults.sandbox, session_tools_visibility="all")
                agents = replace(agents, defaults=replace(agents.defaults, sandbox=sandbox))
    return replace(config, tools=tools, agents=agents)


def _asked_again(reader: Reader, config: Config, recorded: Recorded, refusal: Refusal) -> RefusalCode | None:
    """Return what the resolver says to the same words with other settings; None where it finds the session."""
    then = Reader(reader.log, config=lambda: config, clock=reader.clock)
    requester, given = then.requester(refusal.requester), refusal.arguments
    operation = _SENDS.get(refusal.tool, "history")
    key, label, agent = (given.get(name) for name in ("sessionKey", "label", "agentId"))
    key = key if key is not None else given.get("key")
    try:
        if isinstance(key, str):
            resolve_target(then, requester, key, operation, as_of=recorded.position - 1)
        elif isinstance(label, str):
            resolve_label(then, requester, label, agent if isinstance(agent, str) else None, operation)
        elif isinstance(agent, str):
            resolve_main(then, requester, agent, operation)
    except ToolRefused as refused:
        return refused.code
    return None


# --- what the send policy lets out


def _of_policy(
    reader: Reader, in_force: InForce, recorded: Recorded, refusal: Refusal, whole: Explanation
) -> Explanation:
    config = in_force.at(recorded.position)
    spawned = refusal.tool == "sessions_spawn"
    target = _child_key(config, refusal) if spawned else _target_key(reader, config, refusal)
    if target is None:
        return whole
    speaking = said_by_policy(reader, in_force, target, None, recorded.position)
    # A child that was never there has no setting that could be another one.
    lets_out = [one for one in what_would_let_out(speaking) if not (spawned and one.setting == "sendPolicy")]
    return replace(
        whole,
        inputs=whole.inputs + speaking.inputs,
        instead=tuple(lets_out) or whole.instead,
        as_decided=not speaking.verdict.allowed,
    )


def _child_key(config: Config, refusal: Refusal) -> str | None:
    """Return a key like that of the sub-agent that was not started; the end of it, which no rule looks at, is made up."""
    try:
        own = (
            config.default_agent
            if refusal.requester is None
            else SessionKey.recorded(refusal.requester).agent_id
        )
        given = refusal.arguments.get("agentId", own)
        agent_id = parse_agent_id(given if isinstance(given, str) else own)
    except InvalidKey:
        return None
    made = SessionKey.acp if refusal.arguments.get("runtime") == "acp" else SessionKey.subagent
    return str(made(agent_id, _NO_UUID))


def _target_key(reader: Reader, config: Config, refusal: Refusal) -> str | None:
    given = refusal.arguments.get("sessionKey", refusal.arguments.get("key"))
    if not isinstance(given, str):
        return None
    then = Reader(reader.log, config=lambda: config, clock=reader.clock)
    try:
        return str(resolve_target(then, then.requester(refusal.requester), given, "send").key)
    except ToolRefused:
        return None
