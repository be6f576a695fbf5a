"""Parses the SPEC of a fork's agent: a registered name, `recorded`, `script:FILE`, a model, `module:name` (FORK-4)."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, cast

from intersession_actors.hindsight.forking.carrying import Stopping
from intersession_actors.outside.agents.agents import Agent
from intersession_actors.outside.agents.recorded import RecordedAgent
from intersession_actors.outside.agents.recording import Recording
from intersession_actors.outside.agents.script import script_file
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.host.extras import named_object

EVERY: Final = "*"
RECORDED: Final = "recorded"
_SCRIPT: Final = "script:"
FORMS: Final = "recorded, script:FILE, module:name, provider/model, or the name of an agent of the host"

Models = Callable[[str], Agent]
"""Makes an agent of a model, `provider/id`, as the configuration has it; raises `ConfigError`."""


def no_such_agent(spec: str, why: str, known: Iterable[str] = ()) -> ToolRefused:
    """Return the refusal of an invalid SPEC, with the valid forms."""
    named = ", ".join(sorted(known))
    there = f"; agents here: {named}" if named else ""
    return ToolRefused("unknown_agent", f"agent {spec[:128]!r}: {why}; give {FORMS}{there}")


class AgentSpecs:
    """Makes agents from SPECs.

    `named` are the agents that the host has, `models` makes one of a model, `recording` has what was answered in the source.
    From `afar` neither files nor modules of this machine can be named.
    """

    def __init__(
        self,
        *,
        named: Mapping[str, Agent] | None = None,
        models: Models | None = None,
        recording: Callable[[], Recording] | None = None,
        after: int = 0,
        loose: bool = False,
        afar: bool = False,
    ) -> None:
        self._named = dict(named or {})
        self._models = models
        self._recording = recording
        self._after = after
        self._loose = loose
        self._afar = afar

    def agent(self, agent_id: str, spec: str | Agent, otherwise: Stopping) -> Agent:
        """Return the agent of a SPEC for an agent id.

        Raises:
            ToolRefused: it means none, or its script can't be read.
            ConfigError: its model is not configured.
        """
        if not isinstance(spec, str):
            return spec
        if spec == RECORDED:
            return self._recorded(otherwise)
        if spec in self._named:
            return self._named[spec]
        if self._afar and ":" in spec:
            raise no_such_agent(
                spec,
                "a file or a module of the host's can't be named from elsewhere, give {script: [reply …]}",
            )
        if spec.startswith(_SCRIPT):
            return script_file(Path(spec.removeprefix(_SCRIPT)).expanduser())
        if ":" in spec:
            return _imported(spec, self._named)
        if all(spec.partition("/")) and self._models is not None:
            return self._models(spec)
        raise no_such_agent(spec, f"no agent of the host has that name (for {agent_id})", self._named)

    def _recorded(self, otherwise: Stopping) -> Agent:
        if self._recording is None:
            raise no_such_agent(RECORDED, "the log that this one is a fork of is not at hand", self._named)
        return RecordedAgent(
            self._recording(),
            match="place" if self._loose else "meaning",
            otherwise=otherwise,
            passed=otherwise.passed,
            waits=otherwise.waits,
            after=self._after,
        )


def _imported(spec: str, named: Iterable[str]) -> Agent:
    try:
        found = named_object(spec)
    except ImportError as error:
        raise no_such_agent(spec, str(error), named) from error
    if not callable(found) and not hasattr(found, "run") and not hasattr(found, "actor_urn"):
        raise no_such_agent(spec, f"it is a {type(found).__name__} and no agent", named)
    return cast("Agent", found)
