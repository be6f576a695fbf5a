"""Checks a configuration: its shape as plain JSON, each problem with its path (CFG-1), and values that have to fit each other."""

import ipaddress
import re
from collections.abc import Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from types import NoneType, UnionType
from typing import Final, Literal, TypeAlias, Union, get_args, get_origin
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec.structs import FieldInfo

from intersession_actors.rules.config.host import Encryption, Gateway, GatewayTools, Transcripts
from intersession_actors.rules.config.prices import costs_in, price_in
from intersession_actors.rules.config.session import SendPolicy, SessionSettings
from intersession_actors.rules.config.settings import ChannelDelivery, Settings, ThreadBindings, ToolRules
from intersession_actors.rules.config.tools import (
    TOOL_GROUPS,
    TOOL_NAMES,
    Agents,
    AgentTools,
    ToolSettings,
    tool_pattern,
)
from intersession_actors.rules.config.unused import IGNORED, REFUSED, restrictions_of_channel
from intersession_actors.rules.errors import ConfigProblem
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey, valid_agent_id
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list, is_object
from intersession_events.stores.url import is_base_url

_SECRET: Final = re.compile(r"token|password|secret|apikey", re.IGNORECASE)
Expected: TypeAlias = object
"""A type as an annotation spells it: a class, a union, `tuple[str, ...]`."""

_WORDS: Final = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


class Findings:
    """What is said of a configuration: `problems` to refuse it for, `notices` to show."""

    def __init__(self) -> None:
        self.problems: list[ConfigProblem] = []
        self.notices: list[str] = []

    def refuse(self, path: str, what: str) -> None:
        """Note a problem."""
        self.problems.append(ConfigProblem(path, what))

    def note(self, what: str) -> None:
        """Note what is to be shown."""
        self.notices.append(what)


class ShapeCheck:
    """Holds plain JSON against the shape of a configuration."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.ignored: list[str] = []
        """Places that mean nothing here."""

    def object(self, value: JsonValue, shape: type[Settings], path: str = "") -> JsonObject:
        """Return the object without keys that have no meaning here."""
        if not is_object(value):
            self._findings.refuse(path, f"expected an object, got {_name(value)}")
            return {}
        fields = _fields_of(shape)
        ignored, restricting = IGNORED.get(_place(path), frozenset()), REFUSED.get(_place(path), {})
        kept: JsonObject = {}
        for key, inner in value.items():
            at = f"{path}.{key}" if path else str(key)
            if key in fields:
                kept[key] = self._value(inner, fields[key].type, at)
            elif key in restricting and restricting[key].is_in(inner):
                self._findings.refuse(at, restricting[key].refusal)
            elif key in ignored or key in restricting:
                self.ignored.append(at)
            else:
                self._findings.refuse(at, _unknown(str(key), [*fields]))
        for field in fields.values():
            if field.encode_name not in value and (
                field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT
            ):
                self._findings.refuse(f"{path}.{field.encode_name}", "is missing; give it")
        return kept

    def channels(self, channels: JsonValue) -> None:
        """Check the parts of each channel's settings that are read here; the rest is the channel's own."""
        for name, channel in channels.items() if is_object(channels) else ():
            if is_object(channel) and "threadBindings" in channel:
                self.object(channel["threadBindings"], ThreadBindings, f"channels.{name}.threadBindings")
            if is_object(channel) and ("deliver" in channel or "worker" in channel):
                ours = _fields_of(ChannelDelivery)
                delivery = {key: value for key, value in channel.items() if key in ours}
                self.object(delivery, ChannelDelivery, f"channels.{name}")
            self._findings.problems.extend(restrictions_of_channel(channel, f"channels.{name}"))

    def providers(self, models: JsonValue) -> None:
        """Refuse what restricts the calls of a provider and is not read here, and invalid costs; the rest describes it and its models."""
        providers = models.get("providers") if is_object(models) else None
        for name, provider in providers.items() if is_object(providers) else ():
            for key, restriction in REFUSED["models.providers.*"].items():
                if is_object(provider) and key in provider and restriction.is_in(provider[key]):
                    self._findings.refuse(f"models.providers.{name}.{key}", restriction.refusal)
            for number, _, cost in costs_in(provider):
                try:
                    price_in(cost)
                except ValueError as error:
                    self._findings.refuse(f"models.providers.{name}.models[{number}].cost", str(error))

    def _value(self, value: JsonValue, expected: Expected, path: str) -> JsonValue:
        if value is None:
            self._findings.refuse(
                path, f"null is no value{_allowed(expected)}; leave the key out for the default"
            )
            return None
        if shape := _shape_for(value, expected):
            return self.object(value, shape, path)
        origin, arguments = get_origin(expected), get_args(expected)
        if origin in (Union, UnionType) and is_list(value):
            containers = [choice for choice in arguments if get_origin(choice) is tuple]
            if containers:
                return self._value(value, containers[0], path)
        if origin is tuple and is_list(value):
            return [self._value(item, arguments[0], f"{path}[{index}]") for index, item in enumerate(value)]
        if origin is dict and is_object(value) and arguments[1] is not JsonValue:
            return {key: self._value(item, arguments[1], f"{path}.{key}") for key, item in value.items()}
        try:
            msgspec.convert(value, expected)
        except msgspec.ValidationError as error:
            self._findings.refuse(path, _bad_value(value, expected, str(error), path))
        return value


@cache
def _fields_of(shape: type[Settings]) -> Mapping[str, FieldInfo]:
    """Return the fields by the names that a configuration has for them. To read their types takes long."""
    return {field.encode_name: field for field in msgspec.structs.fields(shape)}


def _place(path: str) -> str:
    if path.startswith("channels."):
        return f"channels.*.{path.rpartition('.')[2]}"
    named = re.fullmatch(r"(cron\.jobs|mcp\.servers)\.[^.]+", path)
    return f"{named[1]}.*" if named is not None else re.sub(r"\[\d+\]", "[]", path)


def _shape_for(value: JsonValue, expected: Expected) -> type[Settings] | None:
    """Return the object that is expected here; where text would do as well, only for an object."""
    choices = [choice for choice in (get_args(expected) or (expected,)) if choice is not NoneType]
    shapes = [choice for choice in choices if isinstance(choice, type) and issubclass(choice, Settings)]
    if get_origin(expected) in (tuple, dict) or not shapes:
        return None
    return shapes[0] if is_object(value) or len(choices) == 1 else None


def _unknown(key: str, known: list[str]) -> str:
    close = get_close_matches(key, known, n=1) or get_close_matches(key.lower(), known, n=1)
    return (
        f"unknown key; did you mean {close[0]}?"
        if close
        else f"unknown key; known here: {', '.join(sorted(known))}"
    )


def _literals(expected: Expected) -> list[str]:
    if get_origin(expected) is Literal:
        return [str(value) for value in get_args(expected)]
    if get_origin(expected) in (Union, UnionType):
        return [text for choice in get_args(expected) for text in _literals(choice)]
    return []


def _allowed(expected: Expected) -> str:
    allowed = _literals(expected)
    return f", allowed: {', '.join(allowed)}" if allowed else ""


def _bad_value(value: JsonValue, expected: Expected, error: str, path: str) -> str:
    if allowed := _allowed(expected):
        shown = f"{value!r} is unknown" if isinstance(value, str) else f"{_name(value)} is no value"
        return shown + allowed
    wanted = re.sub(r"`([a-z |]+)`", lambda found: _plainly(found[1]), error.partition(" - at ")[0])
    if isinstance(value, int | float) and not isinstance(value, bool) and not _SECRET.search(path):
        return f"{wanted[:1].lower()}{wanted[1:].partition(', got')[0]}, got {value!r}"
    return wanted[:1].lower() + wanted[1:]


def _plainly(types: str) -> str:
    return " or ".join(_WORDS.get(kind, kind) for kind in types.split(" | ") if kind != "null") or "null"


def _name(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return "a string"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"


def check_session(session: SessionSettings, findings: Findings) -> None:
    """Refuse an invalid main key, and rules of the send policy that name one session (POL-1)."""
    try:
        SessionKey.main("main", session.main_key)
    except InvalidKey:
        what = f"{session.main_key!r} can't be a main key; use one segment [a-z0-9][a-z0-9_-]{{0,63}}, no reserved word"
        findings.refuse("session.mainKey", what)
        return
    _check_prefixes(session.send_policy, session.main_key, findings)
    _check_resets(session, findings)


def _check_resets(session: SessionSettings, findings: Findings) -> None:
    """Refuse resets in an unknown zone, idle ones without a time, and commands of several words (RESET-1)."""
    kinds = session.reset_by_type
    resets = {
        "session.reset": session.reset,
        "session.resetByType.direct": kinds.direct,
        "session.resetByType.group": kinds.group,
        "session.resetByType.thread": kinds.thread,
        **{f"session.resetByChannel.{name}": own for name, own in session.reset_by_channel.items()},
    }
    for path, reset in resets.items():
        if reset is None:
            continue
        if reset.tz is not None and not is_zone(reset.tz):
            findings.refuse(
                f"{path}.tz", f"{reset.tz!r} is no time zone of this machine, use one such as Europe/Berlin"
            )
        general = (
            None
            if reset is not session.reset and path.startswith("session.resetByChannel")
            else session.reset
        )
        minutes = (
            reset.idle_minutes,
            None if general is None else general.idle_minutes,
            session.idle_minutes,
        )
        if reset.mode == "idle" and all(given is None for given in minutes):
            findings.refuse(f"{path}.idleMinutes", "is missing, and mode is idle; give it")
    for index, trigger in enumerate(session.reset_triggers):
        if len(trigger.split()) != 1 or trigger != trigger.strip():
            findings.refuse(
                f"session.resetTriggers[{index}]", f"{trigger!r} is not one word, use one such as /new"
            )


def is_zone(name: str) -> bool:
    """Whether this machine knows a time zone."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return name == "UTC"
    return True


def _check_prefixes(policy: SendPolicy, main_key: str, findings: Findings) -> None:
    for index, rule in enumerate(policy.rules):
        prefixes = {"keyPrefix": rule.match.key_prefix, "rawKeyPrefix": rule.match.raw_key_prefix}
        for name, prefix in prefixes.items():
            if prefix is not None and names_a_session(prefix, main_key):
                findings.refuse(
                    f"session.sendPolicy.rules[{index}].match.{name}",
                    f"{prefix!r} names one session; end it with ':' for a family, or set that session's sendPolicy",
                )


def check_agents(agents: Agents, findings: Findings) -> None:
    """Refuse an agent without an id of its own; note that a spawn depth beyond 1 is an extension (SPAWN-3)."""
    seen: set[str] = set()
    for index, agent in enumerate(agents.list):
        path = f"agents.list[{index}]"
        if not valid_agent_id(agent.id):
            findings.refuse(f"{path}.id", f"{agent.id!r} is no agent id; use [a-z0-9][a-z0-9_-]{{0,63}}")
        if agent.id in seen:
            findings.refuse(f"{path}.id", f"{agent.id!r} is listed twice; give each agent an id of its own")
        seen.add(agent.id)
        _check_rules(agent.tools, f"{path}.tools", findings)
    depth = agents.defaults.subagents.max_spawn_depth
    if depth > 1:
        findings.note(
            f"agents.defaults.subagents.maxSpawnDepth: {depth} lets sub-agents start sub-agents where "
            "tools.subagents.tools gives them sessions_spawn; 1 is usual"
        )


def check_tools(tools: ToolSettings, findings: Findings) -> None:
    """Refuse two lists of allowed tools in one place; note that an empty list of agents allows nobody here."""
    _check_rules(tools, "tools", findings)
    _check_rules(tools.subagents.tools, "tools.subagents.tools", findings)
    _check_rules(tools.sandbox.tools, "tools.sandbox.tools", findings)
    if tools.agent_to_agent.enabled and tools.agent_to_agent.allow == ():
        findings.note("tools.agentToAgent.allow: [] allows no agent; leave the key out to allow all")


def _check_rules(rules: ToolRules | ToolSettings | AgentTools, path: str, findings: Findings) -> None:
    if isinstance(rules, AgentTools):
        _check_rules(rules.sandbox.tools, f"{path}.sandbox.tools", findings)
    if rules.allow and rules.also_allow and not isinstance(rules, ToolRules):
        findings.refuse(f"{path}.alsoAllow", f"can't stand beside {path}.allow; put all of it into allow")


def check_denied(tools: ToolSettings, agents: Agents, gateway: Gateway, findings: Findings) -> None:
    """Refuse a misspelt name of a denied tool: nothing would be denied."""
    places: list[tuple[str, ToolRules | ToolSettings | AgentTools | GatewayTools]] = [
        ("tools", tools),
        ("tools.subagents.tools", tools.subagents.tools),
        ("tools.sandbox.tools", tools.sandbox.tools),
        ("gateway.tools", gateway.tools),
    ]
    for index, agent in enumerate(agents.list):
        path = f"agents.list[{index}].tools"
        places += [(path, agent.tools), (f"{path}.sandbox.tools", agent.tools.sandbox.tools)]
    for path, rules in places:
        for index, pattern in enumerate(rules.deny):
            if meant := _misspelt(pattern):
                findings.refuse(f"{path}.deny[{index}]", f"{pattern!r} denies nothing; did you mean {meant}?")


def _misspelt(pattern: str) -> str | None:
    """Return the tool, or the tools, that a pattern was to name; None where it names one, or none of ours."""
    name = tool_pattern(pattern)
    if name in TOOL_GROUPS or any(fnmatchcase(tool, name) for tool in TOOL_NAMES):
        return None
    known = (*TOOL_NAMES, *TOOL_GROUPS, "sessions_*")
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.85)), None)


def check_encryption(encryption: Encryption, transcripts: Transcripts, findings: Findings) -> None:
    """Check that there is one master key, and nothing that would have the words beside the log."""
    keys = encryption.keys
    if keys is None:
        if encryption.sessions != "all":
            findings.refuse(
                "encryption.sessions", "it needs encryption.keys: name a file, a keyring or a command"
            )
        return
    if sum(map(bool, (keys.file, keys.keyring, keys.command))) != 1:
        findings.refuse("encryption.keys", "name one place of the master key: file, keyring or command")
    if transcripts.mirror:
        findings.refuse(
            "transcripts.mirror",
            "mirrored transcripts are not encrypted: turn them off, or leave out encryption",
        )


def check_gateway(gateway: Gateway, findings: Findings) -> None:
    """Refuse `custom` without an address, proxies that are not addresses, credentials that share a name or a token."""
    if gateway.bind == "custom" and gateway.custom_bind_host is None:
        findings.refuse("gateway.customBindHost", 'is missing for gateway.bind "custom"; give an address')
    if gateway.advertise is not None and not is_base_url(gateway.advertise):
        what = f"{gateway.advertise!r} is no address; give http:// or https://, a host, and a port if it is another than usual"
        findings.refuse("gateway.advertise", what)
    for index, proxy in enumerate(gateway.trusted_proxies):
        try:
            ipaddress.ip_network(proxy, strict=False)
        except ValueError:
            what = f"{proxy!r} is no address; give one, or a network such as 10.0.0.0/8"
            findings.refuse(f"gateway.trustedProxies[{index}]", what)
    names: set[str] = set()
    tokens = {gateway.auth.token, gateway.auth.password} - {None}
    for index, credential in enumerate(gateway.auth.credentials):
        path = f"gateway.auth.credentials[{index}]"
        if credential.name in names:
            findings.refuse(
                f"{path}.name", f"{credential.name!r} is listed twice; give each a name of its own"
            )
        if not credential.name.isprintable():
            findings.refuse(f"{path}.name", "has characters that can't be printed; give a plain name")
        if credential.token in tokens:
            findings.refuse(
                f"{path}.token", "is another credential's token too; give each a token of its own"
            )
        takes = bool(credential.agents or credential.channels)
        if takes != ("worker" in credential.scopes):
            what = (
                "needs `agents` or `channels`: globs over what its workers may have"
                if "worker" in credential.scopes
                else '`agents` and `channels` are for workers; give it the scope "worker", or leave them out'
            )
            findings.refuse(f"{path}.{'agents' if takes else 'scopes'}", what)
        names.add(credential.name)
        tokens.add(credential.token)


_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def names_a_session(prefix: str, main_key: str = "main") -> bool:
    """Whether a prefix is a whole key or a session id: a rule is about a family, never about one session."""
    if prefix.endswith(":"):
        return False
    if prefix in {"global", "unknown"} or _UUID.fullmatch(prefix):
        return True
    if _key(prefix, main_key) is not None:
        return True
    short = _key(f"agent:main:{prefix}", main_key)
    # A word alone may begin the names of channels and families: only a few such words are keys of their own.
    return short is not None and (":" in prefix or short.family in {"main", "node"})


def _key(text: str, main_key: str) -> SessionKey | None:
    try:
        return SessionKey.parse(text, main_key=main_key)
    except InvalidKey:
        return None
