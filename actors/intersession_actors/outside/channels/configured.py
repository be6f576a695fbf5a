"""Makes channels from a configuration's `channels.<name>.deliver` (CFG-1, X13)."""

import re
from collections.abc import Collection, Iterable
from typing import Final

from intersession_actors.outside.channels.addresses import THIS_NETWORK, Network, plain_host
from intersession_actors.outside.channels.channels import Channel, DeliveryRefused
from intersession_actors.outside.channels.url import SCHEMES, BadChannelUrl, channel_url
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import ConfigError, ConfigProblem
from intersession_actors.running.host.extras import imported
from intersession_events.basics.plain_json import JsonMapping, JsonValue

_HOST: Final = re.compile(r"[A-Za-z0-9_.:-]+|\[[0-9a-fA-F:.]+\]")


def configured_channels(
    config: Config, network: Network = THIS_NETWORK, *, of_worker: Collection[str] | None = None
) -> dict[str, Channel]:
    """Return the channels of the configuration, without using the network: the named ones of a worker, or all that a host calls itself.

    Raises:
        ConfigError: a URL can't be used, with its path and without its secrets.
        MissingExtra: a URL needs Apprise, which is not installed.
    """
    made: dict[str, Channel] = {}
    problems: list[ConfigProblem] = []
    problems += [
        ConfigProblem(f"channels.{name}.deliver", "is missing; a worker's channel needs a URL")
        for name in of_worker or ()
        if "deliver" not in config.channels.get(name, {})
    ]
    for name, settings in config.channels.items():
        is_here = settings.get("worker") is not True if of_worker is None else name in of_worker
        if "deliver" not in settings or settings.get("enabled") is False or not is_here:
            continue
        path = f"channels.{name}"
        hosts: JsonValue = settings.get("allowHosts", ())
        problems += host_problems(f"{path}.allowHosts", hosts)
        try:
            made[name] = _channel(settings, f"{path}.deliver", frozenset(map(plain_host, hosts)), network)
        except (BadChannelUrl, DeliveryRefused) as error:
            problems.append(ConfigProblem(f"{path}.deliver", str(error)))
    if problems:
        raise ConfigError(problems)
    return made


def host_problems(path: str, hosts: Iterable[str]) -> list[ConfigProblem]:
    """Return what is wrong with a list of private hosts that may be reached."""
    return [
        ConfigProblem(path, f"{host!r} is no host; give a name or an address, nothing else")
        for host in hosts
        if _HOST.fullmatch(host) is None
    ]


def _channel(settings: JsonMapping, path: str, allowed: frozenset[str], network: Network) -> Channel:
    url = channel_url(str(settings["deliver"]))
    if url.scheme in SCHEMES:
        # Few post, and HTTP brings the parts of e-mail with it.
        from intersession_actors.outside.channels.webhook import webhook  # noqa: PLC0415

        channel = webhook(url, allowed=allowed, network=network)
    else:
        imported("apprise", what=f"{path} ({url.scheme}://…)", library="Apprise", extra="channels")
        from intersession_actors.outside.channels.apprise import (  # noqa: PLC0415 - as few have such a channel
            apprise_channel,
        )

        channel = apprise_channel(url, allowed=allowed, network=network)
    limits = [most for most in (channel.max_chars, settings.get("maxChars")) if isinstance(most, int)]
    channel.max_chars = min(limits, default=None)
    return channel
