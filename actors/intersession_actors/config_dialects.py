"""Older spellings of a configuration become the ones used now, each with a notice of the new name (CFG-2)."""

from collections.abc import Mapping
from typing import Any, Final

from intersession_actors.errors import ConfigProblem
from intersession_actors.plain_json import is_list, is_list_like, is_object

Json = dict[str, Any]

_CHANNELS_AT_TOP: Final = (
    "whatsapp",
    "telegram",
    "discord",
    "slack",
    "signal",
    "imessage",
    "msteams",
    "webchat",
)
_ROUTING_ELSEWHERE: Final = ("allowFrom", "bindings", "groupChat", "handoff", "queue", "transcribeAudio")
_CHANNEL_NAMES: Final = ("surface", "provider", "lastProvider")
_CHAT_TYPES: Final = {"dm": "direct", "room": "channel"}


class Renaming:
    """A configuration on its way to today's names. Nothing given to it is changed; `notices` say what was."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config: Json = _copy(config)
        self.notices: list[str] = []
        self.problems: list[ConfigProblem] = []

    def run(self) -> Json:
        """Return the configuration with today's names."""
        self._agent_at_top()
        self._routing()
        for name in _CHANNELS_AT_TOP:
            if is_object(self.config.get(name)):
                self._move(self.config, name, f"channels.{name}")
        self._send_rules()
        self._thread_hours()
        return self.config

    def _agent_at_top(self) -> None:
        agent = self.config.get("agent")
        if not is_object(agent):
            return
        for part in ("subagents", "sandbox"):
            inner: Any = agent.get(part)
            if is_object(inner) and "tools" in inner:
                self._move(inner, "tools", f"tools.{part}.tools", f"agent.{part}.tools")
        for old, new in (("tools", "tools"), ("elevated", "tools.elevated"), ("bash", "tools.exec")):
            if old in agent:
                self._move(agent, old, new, f"agent.{old}")
        self._move(self.config, "agent", "agents.defaults", spell_out=True)

    def _routing(self) -> None:
        routing = self.config.get("routing")
        if not is_object(routing):
            return
        agents: Any = routing.get("agents")
        if is_object(agents):
            for agent_id, entry in agents.items():
                listed = self._listed(str(agent_id))
                if listed is not None and is_object(entry):
                    self._merge(listed, entry, f"agents.list[{agent_id}]")
                    self.notices.append(
                        f"routing.agents.{agent_id} is called agents.list[] (id {agent_id!r}) now"
                    )
            del routing["agents"]
        default = routing.pop("defaultAgentId", None)
        if default is not None:
            listed = self._listed(str(default))
            if listed is not None:
                listed.setdefault("default", True)
            self.notices.append("routing.defaultAgentId is called agents.list[].default now")
        if "agentToAgent" in routing:
            self._move(routing, "agentToAgent", "tools.agentToAgent", "routing.agentToAgent")
        elsewhere = [key for key in _ROUTING_ELSEWHERE if routing.pop(key, None) is not None]
        if elsewhere:
            self.notices.append(f"not used here: {', '.join(f'routing.{key}' for key in elsewhere)}")
        if not routing:
            del self.config["routing"]

    def _send_rules(self) -> None:
        rules = _at(self.config, "session", "sendPolicy", "rules")
        for index, rule in enumerate(rules if is_list(rules) else []):
            match = _at(rule, "match")
            if not is_object(match):
                continue
            path = f"session.sendPolicy.rules[{index}].match"
            for old in _CHANNEL_NAMES:
                if old in match:
                    self._rename(match, old, "channel", path)
            kind: Any = match.get("chatType")
            if isinstance(kind, str) and kind in _CHAT_TYPES:
                match["chatType"] = _CHAT_TYPES[kind]
                self.notices.append(f"{path}.chatType: {kind!r} is called {_CHAT_TYPES[kind]!r} now")

    def _thread_hours(self) -> None:
        owners = {"session": self.config.get("session")}
        channels = self.config.get("channels")
        if is_object(channels):
            owners |= {f"channels.{name}": channel for name, channel in channels.items()}
        for path, owner in owners.items():
            bindings = _at(owner, "threadBindings")
            if is_object(bindings) and "ttlHours" in bindings:
                self._rename(bindings, "ttlHours", "idleHours", f"{path}.threadBindings")

    def _listed(self, agent_id: str) -> Json | None:
        agents: Any = self.config.setdefault("agents", {})
        listed: Any = agents.setdefault("list", []) if is_object(agents) else None
        if not is_list(listed):
            return None
        for entry in listed:
            if is_object(entry) and entry.get("id") == agent_id:
                return entry
        entry = {"id": agent_id}
        listed.append(entry)
        return entry

    def _rename(self, owner: Json, old: str, new: str, path: str) -> None:
        if new in owner and owner[new] != owner[old]:
            self.problems.append(
                ConfigProblem(f"{path}.{old}", f"is the old name of {new}, which says otherwise")
            )
        owner[new] = owner.pop(old)
        self.notices.append(f"{path}.{old} is called {path}.{new} now")

    def _move(
        self, owner: Json, key: str, to: str, shown: str | None = None, *, spell_out: bool = False
    ) -> None:
        value = owner.pop(key)
        *parents, last = to.split(".")
        place: Any = self.config
        for parent in parents:
            place = place.setdefault(parent, {}) if is_object(place) else None
        if not is_object(place):
            owner[key] = value
            return
        old = shown or key
        if is_object(value) and is_object(place.setdefault(last, {})):
            inner: Json = value
            if spell_out:
                self.notices.extend(f"{old}.{name} is called {to}.{name} now" for name in inner)
            self._merge(place[last], inner, to)
        elif last in place and place[last] != value:
            self.problems.append(ConfigProblem(old, f"is the old name of {to}, which says otherwise"))
        else:
            place[last] = value
        if not spell_out:
            self.notices.append(f"{old} is called {to} now")

    def _merge(self, into: Json, values: Json, path: str) -> None:
        """Take the old values over; where both spellings say something, they must say the same."""
        for key, value in values.items():
            if key not in into:
                into[key] = value
            elif is_object(into[key]) and is_object(value):
                self._merge(into[key], value, f"{path}.{key}")
            elif into[key] != value:
                self.problems.append(
                    ConfigProblem(f"{path}.{key}", "is given twice, by its old name differently")
                )


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if is_object(value) else None
    return value


def _copy(value: Any) -> Any:
    if is_object(value):
        return {key: _copy(inner) for key, inner in value.items()}
    if is_list_like(value):
        return [_copy(inner) for inner in value]
    return value
