"""The configuration: one file in JSON5 with the original's names, checked as a whole before anything starts (CFG)."""

import os
from collections.abc import Iterable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from intersession_actors.rules.config import check, host
from intersession_actors.rules.config.budgets import Budget
from intersession_actors.rules.config.check import Findings
from intersession_actors.rules.config.cron import Cron, check_cron
from intersession_actors.rules.config.messages import Messages
from intersession_actors.rules.config.read import check_plain, read_config_file
from intersession_actors.rules.config.redacted import config_digest, plain_config, redacted_text
from intersession_actors.rules.config.retention import Retention, check_retention
from intersession_actors.rules.config.session import SessionSettings
from intersession_actors.rules.config.settings import Settings, Text, ThreadBindings, milliseconds, primary_of
from intersession_actors.rules.config.spellings import Renaming, clamp_turns, fill_in, fold_agent_ids
from intersession_actors.rules.config.tools import Agents, AgentSettings, Compaction, ToolSettings
from intersession_actors.rules.errors import ConfigError, ConfigProblem
from intersession_events.basics.keys.key import valid_agent_id
from intersession_events.basics.keys.references import Reference, refer
from intersession_events.basics.plain_json import JsonMapping, JsonObject, JsonValue, is_object
from intersession_events.facts import ready

ConfigSource = JsonMapping | Path | str | None
"""What a configuration is read from: its values, the path of a file, or nothing for the defaults."""

_ID: Final = attrgetter("id")


@ready
class Config(Settings, frozen=True, kw_only=True):
    """A configuration in force. Make one with `load_config`, which checks it as a whole.

    `store` is the log's URL, `channels` what each channel was given for itself.
    """

    session: SessionSettings = SessionSettings()
    messages: Messages = Messages()
    budgets: dict[str, Budget] = msgspec.field(default_factory=dict[str, Budget])
    tools: ToolSettings = ToolSettings()
    agents: Agents = Agents()
    channels: dict[str, JsonObject] = msgspec.field(default_factory=dict[str, JsonObject])
    gateway: host.Gateway = host.Gateway()
    models: host.Models = host.Models()
    mcp: host.Mcp = host.Mcp()
    runs: host.Runs = host.Runs()
    files: host.Files = host.Files()
    deliveries: host.Deliveries = host.Deliveries()
    cron: Cron = Cron()
    retention: Retention = Retention()
    transcripts: host.Transcripts = host.Transcripts()
    views: host.Views = host.Views()
    encryption: host.Encryption = host.Encryption()
    audit: host.Audit = host.Audit()
    checkpoints: host.Checkpoints = host.Checkpoints()
    logging: host.Logging = host.Logging()
    tracing: host.Tracing = host.Tracing()
    store: Text | None = None

    @property
    def agent_ids(self) -> tuple[str, ...]:
        """The ids of all configured agents, as listed; `main` if none is listed."""
        return tuple(map(_ID, self.agents.list)) or ("main",)

    @property
    def default_agent(self) -> str:
        """The agent of keys without an agent and without a requester: marked default, else the first, else `main`."""
        marked = [agent.id for agent in self.agents.list if agent.default]
        return (*marked, *self.agent_ids)[0]

    @property
    def has_tools_by_sender(self) -> bool:
        """Whether a person's tools depend on who it is (TOOLS-2)."""
        return bool(self.tools.tools_by_sender) or any(one.tools.tools_by_sender for one in self.agents.list)

    def agent(self, agent_id: str) -> AgentSettings:
        """Return an agent's own settings; empty for one that is not configured."""
        for agent in self.agents.list:
            if agent.id == agent_id:
                return agent
        return AgentSettings(id=agent_id)

    def at_workers(self, agent_id: str) -> bool:
        """Whether workers alone call an agent (WORK-4)."""
        own = self.agent(agent_id).worker
        return self.agents.defaults.worker if own is None else own

    @property
    def expects_workers(self) -> bool:
        """Whether workers may come: an agent, a channel or a credential is for them."""
        return (
            self.agents.defaults.worker
            or any(agent.worker for agent in self.agents.list)
            or any("worker" in one.scopes for one in self.gateway.auth.credentials)
            or any(is_object(one) and one.get("worker") is True for one in self.channels.values())
        )

    def with_agents(self, agent_ids: Iterable[str]) -> "Config":
        """Return this configuration with agents that a host registered without listing them.

        Raises:
            ConfigError: an id is invalid.
        """
        agent_ids = tuple(agent_ids)
        bad = [agent_id for agent_id in agent_ids if not valid_agent_id(agent_id)]
        if bad:
            raise ConfigError(
                [
                    ConfigProblem("agents", f"{agent_id!r} is no agent id; use [a-z0-9][a-z0-9_-]{{0,63}}")
                    for agent_id in bad
                ]
            )
        known = {agent.id for agent in self.agents.list}
        added = tuple(AgentSettings(id=agent_id) for agent_id in agent_ids if agent_id not in known)
        agents = msgspec.structs.replace(self.agents, list=self.agents.list + added)
        return msgspec.structs.replace(self, agents=agents)

    def sandboxed(self, agent_id: str, *, main: bool) -> bool:
        """Whether a session of this agent, its `main` one or another, is sandboxed when it opens (SPAWN-5)."""
        own = self.agent(agent_id).sandbox.mode
        match own or self.agents.defaults.sandbox.mode:
            case "off":
                return False
            case "non-main":
                return not main
            case "all":
                return True

    def model_of(self, agent_id: str) -> str | None:
        """Return an agent's model, unless a run or session asks for another."""
        return primary_of(self.agent(agent_id).model) or primary_of(self.agents.defaults.model)

    def context_tokens_of(self, agent_id: str) -> int | None:
        """Return the most tokens of its model's window that an agent may use; None is all of them (CTX-1)."""
        return self.agent(agent_id).context_tokens or self.agents.defaults.context_tokens

    def compaction_of(self, agent_id: str) -> Compaction:
        """Return how older turns of an agent's sessions are summarised (CTX-5)."""
        return self.agent(agent_id).compaction or self.agents.defaults.compaction

    def thinking_of(self, agent_id: str) -> str | None:
        """Return an agent's thinking level, unless a run or session asks for another."""
        return self.agent(agent_id).thinking_default or self.agents.defaults.thinking_default

    def refer(self, text: str, *, requester_agent: str | None = None) -> Reference:
        """Return the meaning of a reference to a session, by an agent or by the operator (KEY-2 to KEY-6).

        Raises:
            InvalidKey: the text is neither a key nor anything to look up.
        """
        return refer(
            text,
            requester_agent=requester_agent,
            default_agent=self.default_agent,
            main_key=self.session.main_key,
            scope=self.session.scope,
        )

    def run_timeout_ms(self) -> int:
        """Return the limit of a run, from the start of its attempt; 0 for no limit (LOOP-7)."""
        return milliseconds(self.agents.defaults.timeout_seconds)

    def thread_bindings(self, channel: str) -> ThreadBindings:
        """Return the settings for bound threads of a channel: its own, else the session's (SPAWN-12)."""
        own = self.channels.get(channel, {}).get("threadBindings", {})
        fields = msgspec.structs.fields(ThreadBindings)
        given = msgspec.convert({f.encode_name: own.get(f.encode_name) for f in fields}, ThreadBindings)
        default = self.session.thread_bindings
        return msgspec.structs.replace(
            default, **{f.name: getattr(given, f.name) for f in fields if getattr(given, f.name) is not None}
        )

    def redacted(self) -> str:
        """Return the whole configuration as JSON, without tokens, keys and passwords."""
        return redacted_text(self)

    def digest(self) -> str:
        """Return the SHA-256 of `redacted()`, in hexadecimal."""
        return config_digest(self.redacted())

    def __repr__(self) -> str:
        return f"Config({self.redacted()})"


class LoadedConfig(NamedTuple):
    """A configuration and the notices that are logged about it at start."""

    config: Config
    notices: tuple[str, ...] = ()


def load_config(
    source: ConfigSource | Config = None,
    *,
    variables: Mapping[str, str] | None = None,
    literal: bool = False,
) -> LoadedConfig:
    """Read and check a configuration: values, the path of a JSON5 file, a `Config`, or None for the defaults.

    `variables` stand for `${NAME}` in texts; the process's environment if not given. In a `Config` they were filled in already,
    and so they were in what is recorded: with `literal` the texts stand as they are.

    Raises:
        ConfigError: with every problem found, each with its path. Nothing came into force.
    """
    given = _plain(source)
    check_plain(given)
    if not is_object(given):
        raise ConfigError([ConfigProblem("", "a configuration is an object: {session: …, tools: …}")])
    if "$include" in given:
        raise ConfigError([ConfigProblem("$include", "is not supported; put all settings into one file")])
    findings = Findings()
    renamed = Renaming(given, findings).run()
    clamp_turns(renamed, findings)
    fold_agent_ids(renamed, findings)
    shape = check.ShapeCheck(findings)
    filled = kept = shape.object(renamed, Config)
    shape.channels(kept.get("channels"))
    shape.providers(kept.get("models"))
    if not literal and not isinstance(source, Config):
        filled = fill_in(kept, os.environ if variables is None else variables, findings)
    if findings.problems:
        raise ConfigError(findings.problems)
    check_plain(filled)  # a variable of the process's environment may be bytes that are no text
    config = _converted(filled)
    check.check_session(config.session, findings)
    check.check_tools(config.tools, findings)
    check.check_agents(config.agents, findings)
    check.check_gateway(config.gateway, findings)
    check.check_encryption(config.encryption, config.transcripts, findings)
    check_cron(config.cron, findings)
    check_retention(config.retention, findings)
    if not literal:  # what is recorded was in force, and is read as it was
        check.check_denied(config.tools, config.agents, config.gateway, findings)
    if findings.problems:
        raise ConfigError(findings.problems)
    if shape.ignored:
        findings.note(f"accepted and not used here: {', '.join(sorted(shape.ignored))}")
    return LoadedConfig(config, tuple(findings.notices))


def _plain(source: ConfigSource | Config) -> JsonValue:
    match source:
        case None:
            return {}
        case Config():
            return plain_config(source)
        case str() | Path():
            return read_config_file(Path(source))
        case Mapping():
            return {**source}


def _converted(plain: JsonObject) -> Config:
    try:
        return msgspec.convert(plain, Config)
    except msgspec.ValidationError as error:  # a text that a variable filled in may be none that is allowed
        what, _, where = str(error).partition(" - at `$.")
        raise ConfigError([ConfigProblem(where.rstrip("`"), what.replace("`", ""))]) from error
