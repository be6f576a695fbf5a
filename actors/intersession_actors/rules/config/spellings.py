"""Translates the original's older and later spellings of a configuration, each with a notice of our name (CFG-2)."""

import math
import re
from collections.abc import Mapping
from typing import Final

from intersession_actors.rules.config.check import Findings
from intersession_actors.rules.config.unused import OF_CHANNELS
from intersession_events.basics.plain_json import (
    JsonMapping,
    JsonObject,
    JsonValue,
    is_list,
    is_list_like,
    is_object,
)

_CHANNELS_AT_TOP: Final = "whatsapp telegram discord slack signal imessage msteams webchat"
_ROUTING_ELSEWHERE: Final = ("groupChat", "handoff", "queue", "transcribeAudio")
_CHANNEL_NAMES: Final = ("surface", "provider", "lastProvider")
_STEERING: Final = ("steer", "steer-backlog", "steer+backlog", "queue")
_CHAT_TYPES: Final = {"dm": "direct", "room": "channel"}
_THREADS: Final = {"ttlHours": "idleHours", "spawnSessions": "spawnSubagentSessions"}
_TURNS: Final = "session.agentToAgent.maxPingPongTurns"
_VARIABLE: Final = re.compile(r"\$?\$\{([A-Z_][A-Z0-9_]*)\}")

MAX_TURNS: Final = 5


class Renaming:
    """A configuration on its way to today's names. Nothing given to it is changed."""

    def __init__(self, config: JsonMapping, findings: Findings) -> None:
        self.config: JsonObject = _copy(config)
        self._findings = findings

    def run(self) -> JsonObject:
        """Return the configuration with today's names."""
        self._agent_at_top()
        self._routing()
        for name in _CHANNELS_AT_TOP.split():
            if is_object(self.config.get(name)):
                self._move(self.config, name, f"channels.{name}")
        self._entries()
        self._send_rules()
        self._threads()
        self._compaction()
        self._missed_jobs()
        self._queue_modes()
        kinds = _at(self.config, "session", "resetByType")
        if is_object(kinds) and "dm" in kinds:
            self._rename(kinds, "dm", "direct", "session.resetByType")
        return self.config

    def _agent_at_top(self) -> None:
        agent = self.config.get("agent")
        if not is_object(agent):
            return
        for part in ("subagents", "sandbox"):
            inner: JsonValue = agent.get(part)
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
        if is_object(routing.get("agents")):
            self._routed_agents(routing.pop("agents"))
        default = routing.pop("defaultAgentId", None)
        if default is not None:
            listed = self._listed(str(default))
            if listed is not None:
                listed.setdefault("default", True)
            self._findings.note("routing.defaultAgentId is called agents.list[].default now")
        if "agentToAgent" in routing:
            self._move(routing, "agentToAgent", "tools.agentToAgent", "routing.agentToAgent")
        if "bindings" in routing:
            self._move(routing, "bindings", "bindings", "routing.bindings")
        if OF_CHANNELS["allowFrom"].is_in(routing.pop("allowFrom", [])):
            self._findings.refuse("routing.allowFrom", OF_CHANNELS["allowFrom"].refusal)
        elsewhere = [key for key in _ROUTING_ELSEWHERE if routing.pop(key, None) is not None]
        if elsewhere:
            self._findings.note(f"not used here: {', '.join(f'routing.{key}' for key in elsewhere)}")
        if not routing:
            del self.config["routing"]

    def _routed_agents(self, agents: JsonObject) -> None:
        for agent_id, entry in agents.items():
            listed = self._listed(str(agent_id))
            if listed is not None and is_object(entry):
                self._merge(listed, entry, f"agents.list[{agent_id}]")
                self._findings.note(
                    f"routing.agents.{agent_id} is called agents.list[] (id {agent_id!r}) now"
                )

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
            kind: JsonValue = match.get("chatType")
            if isinstance(kind, str) and kind in _CHAT_TYPES:
                match["chatType"] = _CHAT_TYPES[kind]
                self._findings.note(f"{path}.chatType: {kind!r} is called {_CHAT_TYPES[kind]!r} now")

    def _entries(self) -> None:
        """Take the agents of later releases into the list; the agent for the system's own work is the default one."""
        agents = self.config.get("agents")
        entries = _at(agents, "entries")
        if not is_object(agents) or not is_object(entries):
            return
        del agents["entries"]
        for agent_id, entry in entries.items():
            listed = self._listed(str(agent_id))
            if listed is not None and is_object(entry):
                self._merge(listed, entry, f"agents.entries.{agent_id}")
            else:
                self._findings.refuse(f"agents.entries.{agent_id}", "expected an object")
        self._findings.note("agents.entries.<id> is called agents.list[] here")
        system = _at(agents, "defaults", "systemAgent", "agentId")
        if isinstance(system, str) and system in entries:
            listed = self._listed(system)
            if listed is not None:
                listed.setdefault("default", True)
            del agents["defaults"]["systemAgent"]
            self._findings.note("agents.defaults.systemAgent is called agents.list[].default here")

    def _threads(self) -> None:
        owners = {"session": self.config.get("session")}
        channels = self.config.get("channels")
        if is_object(channels):
            owners |= {f"channels.{name}": channel for name, channel in channels.items()}
        for path, owner in owners.items():
            bindings = _at(owner, "threadBindings")
            for other, ours in _THREADS.items():
                if is_object(bindings) and other in bindings:
                    self._rename(bindings, other, ours, f"{path}.threadBindings")

    def _compaction(self) -> None:
        compaction = _at(self.config, "agents", "defaults", "compaction")
        if is_object(compaction) and isinstance(compaction.get("enabled"), bool):
            if not compaction.pop("enabled"):
                compaction["mode"] = "off"
            self._findings.note("agents.defaults.compaction.enabled: false is mode off here")

    def _missed_jobs(self) -> None:
        cron = self.config.get("cron")
        if not is_object(cron) or not isinstance(cron.get("skipMissedJobs"), bool):
            return
        jobs = _at(cron, "jobs")
        if cron.pop("skipMissedJobs") and is_object(jobs):
            for job in jobs.values():
                if is_object(job):
                    job.setdefault("catchUp", "skip")
        self._findings.note("cron.skipMissedJobs is called cron.jobs.<id>.catchUp here")

    def _queue_modes(self) -> None:
        queue = _at(self.config, "messages", "queue")
        by_channel = _at(queue, "byChannel")
        for place, modes, names in (
            ("messages.queue", queue, ["mode"]),
            ("messages.queue.byChannel", by_channel, [*by_channel] if is_object(by_channel) else []),
        ):
            for name in names:
                if is_object(modes) and modes.get(name) in _STEERING:
                    self._findings.note(
                        f"{place}.{name}: {modes[name]!r} is followup here: a run under way is given nothing more"
                    )
                    modes[name] = "followup"

    def _listed(self, agent_id: str) -> JsonObject | None:
        agents: JsonValue = self.config.setdefault("agents", {})
        listed: JsonValue = agents.setdefault("list", []) if is_object(agents) else None
        if not is_list(listed):
            return None
        for entry in listed:
            if is_object(entry) and entry.get("id") == agent_id:
                return entry
        entry = {"id": agent_id}
        listed.append(entry)
        return entry

    def _rename(self, owner: JsonObject, old: str, new: str, path: str) -> None:
        if new in owner and owner[new] != owner[old]:
            self._findings.refuse(f"{path}.{old}", f"is the old name of {new}, which says otherwise")
        owner[new] = owner.pop(old)
        self._findings.note(f"{path}.{old} is called {path}.{new} now")

    def _move(
        self, owner: JsonObject, key: str, to: str, shown: str | None = None, *, spell_out: bool = False
    ) -> None:
        value = owner.pop(key)
        *parents, last = to.split(".")
        place: JsonValue = self.config
        for parent in parents:
            place = place.setdefault(parent, {}) if is_object(place) else None
        if not is_object(place):
            owner[key] = value
            return
        old = shown or key
        if is_object(value) and is_object(place.setdefault(last, {})):
            inner: JsonObject = value
            if spell_out:
                self._findings.notices.extend(f"{old}.{name} is called {to}.{name} now" for name in inner)
            self._merge(place[last], inner, to)
        elif last in place and place[last] != value:
            self._findings.refuse(old, f"is the old name of {to}, which says otherwise")
        else:
            place[last] = value
        if not spell_out:
            self._findings.note(f"{old} is called {to} now")

    def _merge(self, into: JsonObject, values: JsonObject, path: str) -> None:
        """Take the old values over; where both spellings say something, they must say the same."""
        for key, value in values.items():
            if key not in into:
                into[key] = value
            elif is_object(into[key]) and is_object(value):
                self._merge(into[key], value, f"{path}.{key}")
            elif into[key] != value:
                self._findings.refuse(f"{path}.{key}", "is given twice, by its old name differently")


def _at(value: object, *keys: str) -> JsonValue:
    for key in keys:
        value = value.get(key) if is_object(value) else None
    return value


def _copy(value: object) -> JsonValue:
    if is_object(value):
        return {key: _copy(inner) for key, inner in value.items()}
    if is_list_like(value):
        return [_copy(inner) for inner in value]
    return value


def clamp_turns(config: JsonMapping, findings: Findings) -> None:
    """Bring the number of turns into 0..5, in place (LOOP-2). Other types are left for the check to refuse."""
    exchanges = _at(config, "session", "agentToAgent")
    if not is_object(exchanges):
        return
    given: JsonValue = exchanges.get("maxPingPongTurns")
    if isinstance(given, bool) or not isinstance(given, int | float):
        return
    turns = min(max(math.floor(given), 0), MAX_TURNS)
    if turns != given:
        findings.note(f"{_TURNS}: {given!r} is not a whole number from 0 to {MAX_TURNS}; {turns} is used")
    exchanges["maxPingPongTurns"] = turns


def fold_agent_ids(config: JsonMapping, findings: Findings) -> None:
    """Write agent ids in lower case, as keys have them, in place."""
    listed = _at(config, "agents", "list")
    for index, entry in enumerate(listed if is_list(listed) else []):
        given: JsonValue = entry.get("id") if is_object(entry) else None
        if isinstance(given, str) and given.isascii() and given != given.lower():
            entry["id"] = given.lower()
            findings.note(f"agents.list[{index}].id: {given!r} is written {given.lower()!r} here")


def fill_in(value: object, variables: Mapping[str, str], findings: Findings, path: str = "") -> JsonValue:
    """Replace `${NAME}` in texts by environment variables, as the original does; `$${NAME}` stays as `${NAME}`.

    A variable that is not set is a problem: its literal text would otherwise become somebody's token.
    """
    if is_object(value):
        return {
            key: fill_in(inner, variables, findings, f"{path}.{key}" if path else str(key))
            for key, inner in value.items()
        }
    if is_list(value):
        return [fill_in(inner, variables, findings, f"{path}[{index}]") for index, inner in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replaced(found: re.Match[str]) -> str:
        if found[0].startswith("$$"):
            return found[0][1:]
        if not variables.get(found[1]):
            findings.refuse(path, f"the environment variable {found[1]} is not set; set it")
            return ""
        return variables[found[1]]

    return _VARIABLE.sub(replaced, value)
