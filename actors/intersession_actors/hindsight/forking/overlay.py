"""A fork's own settings: `--set` applies there over the rules of the source, also to earlier work (FORK-4)."""

from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from intersession_actors.owners.exchange.exchange import fixed_by
from intersession_actors.owners.streams.world import ForkOf
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.config.read import read_config_file
from intersession_actors.rules.config.redacted import has_secrets, plain_config
from intersession_actors.rules.gate.values import invalid, json_or_text
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_object
from intersession_events.facts import ForkEdit, ForkEdited
from intersession_events.log.log import Log
from intersession_projections.copies.forks.frozen_work import frozen_in
from intersession_projections.copies.forks.pauses import pauses_in, without_pauses

_FROM_AFAR: Final = ("agents", "deliveries", "runs", "session", "tools")
_EDITED: Final = "fork_edited.%"
_POSITIONS: Final = "SELECT originator_version FROM stored_events WHERE originator_id=? AND topic LIKE ? ORDER BY originator_version"


def set_in(log: Log) -> tuple[ForkEdit, ...]:
    """Return a fork's own settings, in order."""
    versions = [version for (version,) in log.query(_POSITIONS, ("log", _EDITED))]
    events = [log.stream("log", after=version - 1, to=version)[0].event for version in versions]
    return tuple(event.edit for event in events if isinstance(event, ForkEdited) and event.edit.kind == "set")


def fork_of(log: Log, *, config: Callable[[], Config], deliver: Container[str] = ()) -> ForkOf:
    """Return the rules of a log that is a fork: no text goes to its channels except those in `deliver` (FORK-5)."""
    edits, frozen = set_in(log), frozen_in(log)
    return ForkOf(
        accepted_as=lambda accepted: fixed_by(config(), edits, accepted),
        sealed=lambda channel: channel not in deliver,
        frozen_runs=frozen.runs,
        frozen_flows=frozen.flows,
        cut_runs=frozen.cut,
        begun=without_pauses(pauses_in(log)),
    )


class Merged(NamedTuple):
    """A configuration with a file's settings on top, and the paths of changed settings, in order."""

    config: Config
    changed: tuple[str, ...] = ()


def merged(config: Config, file: Path) -> Merged:
    """Return a configuration with a file's settings on top; a list is one setting.

    Raises:
        ConfigError: the file can't be read, has an invalid setting, or one that contradicts the others.
    """
    loaded, defaults = plain_config(load_config(file).config), plain_config(load_config(None).config)
    given: JsonValue = read_config_file(file)
    plain, changed = plain_config(config), list[str]()
    before = dict(_leaves(plain))
    in_file = {path for path, _ in _leaves(given)}
    usual = dict(_leaves(defaults))
    for path, value in _leaves(loaded):
        # A setting may stand in the file under a name that it had once: then it is told by its value.
        if (path in in_file or usual.get(path, _NONE) != value) and before.get(path, _NONE) != value:
            _put(plain, [*path], value)
            changed.append(".".join(path))
    return Merged(load_config(plain, literal=True).config, tuple(sorted(changed)))


_NONE: Final = object()


def _leaves(value: JsonValue, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    """Yield each setting with its path; an object that has none is one itself."""
    if is_object(value) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    else:
        yield path, value


def overlaid(config: Config, edits: Iterable[ForkEdit]) -> Config:
    """Return a configuration with settings on top. A value is JSON, else a text.

    Raises:
        ConfigError: there is no such setting, or the value is invalid; it has the path.
    """
    plain = plain_config(config)
    for edit in edits:
        if edit.kind == "set":
            _put(plain, edit.key.split("."), json_or_text(edit.value))
    return load_config(plain, literal=True).config


def check_settings(config: Config, edits: Iterable[ForkEdit], *, afar: bool) -> None:
    """Refuse settings that a fork can't have on top of a configuration.

    What is set is recorded with the fork, so that it can be no secret. From `afar` only what agents, sessions and tools do can be
    set, not where the host's machine writes, whom it calls and with which keys.

    Raises:
        ConfigError: there is no such setting, or the value is invalid; it has the path.
        ToolRefused: it is a secret, or can't be set from elsewhere.
    """
    edits = [edit for edit in edits if edit.kind == "set"]
    after = overlaid(config, edits)
    for edit in edits:
        path = edit.key.split(".")
        if afar and path[0] not in _FROM_AFAR:
            raise invalid(
                f"--set {edit.key[:64]}", f"it can't be set from elsewhere, only {', '.join(_FROM_AFAR)} can"
            )
        alone: JsonObject = {}
        _put(alone, path, json_or_text(edit.value))
        if has_secrets(alone):
            raise invalid(
                f"--set {edit.key[:64]}",
                "it is a secret, and what is set is recorded in the fork; give it in the configuration",
            )
    if afar and not _workspaces(after) <= _workspaces(config):
        raise invalid("--set", "workspaces can't be set from elsewhere, leave them as they are")


_LATER: Final = (
    "session.agentToAgent.oneWay",
    "session.mainKey",
    "session.scope",
    "session.dmScope",
    "session.identityLinks",
    "tools.sessions.visibility",
    "tools.agentToAgent",
    "tools.sessions_spawn",
    "tools.subagents",
    "tools.sandbox",
)
_NEVER: Final = (
    "audit",
    "channels",
    "checkpoints",
    "deliveries",
    "gateway",
    "logging",
    "store",
    "tracing",
    "transcripts",
    "views",
)


def without_effect(edits: Iterable[ForkEdit]) -> list[str]:
    """Return notes on settings without an effect on the fork's work, or only on later work: doors show them."""
    found: list[str] = []
    for key in (edit.key for edit in edits if edit.kind == "set"):
        if any(_is_under(key, path) for path in _LATER):
            found.append(
                f"--set {key}: what had begun before the cut goes on as it was let in; "
                "this holds only for what agents begin in the fork from there on"
            )
        elif any(_is_under(key, path) for path in _NEVER):
            found.append(
                f"--set {key}: it changes nothing of what agents do in the fork, whose channels and checkpoints are sealed"
            )
    return found


def _is_under(key: str, path: str) -> bool:
    return key == path or key.startswith(f"{path}.")


def _workspaces(config: Config) -> set[str | None]:
    return {None, config.agents.defaults.workspace, *(agent.workspace for agent in config.agents.list)}


def _put(plain: JsonObject, path: list[str], value: JsonValue) -> None:
    *above, last = path
    inner = plain
    for name in above:
        below = inner.get(name)
        inner[name] = below = dict(below) if is_object(below) else {}
        inner = below
    inner[last] = value
