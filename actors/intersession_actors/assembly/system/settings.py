"""The configuration of a running system: checked like at a start, and replaceable while the system runs (CFG-4)."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from intersession_actors.assembly.checkpoints.targets import Target, publishing_targets, signing_key
from intersession_actors.hindsight.forking import on_call
from intersession_actors.outside.channels.channels import Channel
from intersession_actors.outside.channels.configured import configured_channels
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.errors import ConfigError
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.facts import ForkEdit
from intersession_events.proofs.signatures import PrivateKey

logger = logging.getLogger("intersession.config")

ConfigSource = Config | JsonMapping | Path | str | None
"""A configuration as a host gives it."""


class Prepared(NamedTuple):
    """A checked configuration, its notices, and what a start makes from it."""

    config: Config
    notices: tuple[str, ...]
    channels: Mapping[str, Channel]
    targets: Sequence[Target]
    key: PrivateKey | None


def prepared(given: ConfigSource) -> Prepared:
    """Return a configuration that passes the checks of a start.

    Raises:
        ConfigError: a start would refuse it, with the path of every problem.
    """
    config, notices = load_config(given)
    return Prepared(
        config, notices, configured_channels(config), publishing_targets(config), signing_key(config)
    )


class Settings:
    """The configuration in force. `agents` and `channels` are those registered by the host itself.

    Raises:
        ConfigError: the configuration was refused.
    """

    def __init__(self, given: ConfigSource, *, agents: Iterable[str], channels: Collection[str]) -> None:
        self.begun = prepared(given)
        """What the start made: channels, the key and the places of checkpoints stay as they are until the next one."""
        self.config = self.begun.config.with_agents(agents)
        self.notices = (
            *self.begun.notices,
            *(
                f"channels.{name}.deliver: not used, the host delivers for {name!r} itself"
                for name in sorted(self.begun.channels.keys() & channels)
            ),
        )
        self.error: str | None = None
        """Why the last change was refused."""
        for notice in self.notices:
            logger.warning("configuration: %s", notice)

    def overlay(self, edits: Sequence[ForkEdit]) -> None:
        """Apply a fork's settings on top of the configuration (FORK-4).

        Raises:
            ConfigError: there is no such setting, or the value is invalid.
        """
        if edits:
            self.config = on_call.overlaid(self.config, edits)

    def take(self, given: ConfigSource, *, agents: Iterable[str], check: Callable[[Config], None]) -> None:
        """Apply another configuration; one that the next start would refuse is refused now.

        Raises:
            ConfigError: it was refused, by `check` or before. The old one stays, and `error` says why.
        """
        try:
            made = prepared(given)
            config = made.config.with_agents(agents)
            check(config)
        except ConfigError as error:
            self.error = str(error)
            raise
        self.config, self.notices, self.error = config, made.notices, None
