"""The work of `intersession serve`: a token from the environment, the configuration's file watched, the gateway run."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from socket import socket
from typing import Final

import msgspec

from intersession.gateway.admission.credentials import Credentials
from intersession.gateway.admission.limits import Limits
from intersession.gateway.door import refuse_without_token
from intersession.gateway.process.server import run
from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.read import read_config_file
from intersession_actors.rules.errors import ConfigError
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.basics.plain_json import JsonValue, is_object

logger = logging.getLogger("intersession.gateway")

TOKEN_VARIABLE: Final = "INTERSESSION_GATEWAY_TOKEN"  # noqa: S105 - the name of a variable


def given_config(path: Path | None, variables: Mapping[str, str] = os.environ) -> JsonValue:
    """Return the configuration of a file, with the token of the environment if it has none.

    Raises:
        ConfigError: it can't be read.
    """
    given: JsonValue = {} if path is None else read_config_file(path)
    token = variables.get(TOKEN_VARIABLE)
    if not token or not is_object(given):
        return given
    gateway = given.get("gateway", {})
    auth = gateway.get("auth", {}) if is_object(gateway) else None
    if (
        not is_object(gateway)
        or not is_object(auth)
        or auth.get("token")
        or auth.get("mode", "token") != "token"
    ):
        return given
    return {**given, "gateway": {**gateway, "auth": {**auth, "token": token}}}


def with_token(config: Config, variables: Mapping[str, str] = os.environ) -> Config:
    """Return a configuration with the token of the environment, if it has none."""
    token, auth = variables.get(TOKEN_VARIABLE), config.gateway.auth
    if not token or auth.secret or auth.mode != "token":
        return config
    gateway = msgspec.structs.replace(config.gateway, auth=msgspec.structs.replace(auth, token=token))
    return msgspec.structs.replace(config, gateway=gateway)


def refuse_open_door(config: Config) -> None:
    """Refuse a configuration without a token, before a log is made for it.

    Raises:
        ConfigError: nobody could come in, because no token is set.
    """
    refuse_without_token(Credentials(lambda: config.gateway.auth), config.gateway.auth)


def serve(
    system: SessionSystem,
    *,
    config_file: Path | None = None,
    port: int | None = None,
    listening: socket | None = None,
    ready: Callable[[str], None] = lambda _address: None,
    changed: Callable[[Config], None] = lambda _config: None,
    patience_s: float = 0.0,
) -> None:
    """Serve a system until a signal comes. A configuration file that changes is read again (CFG-4).

    `listening` is an address that was taken before; without one, an address in use is waited for `patience_s` seconds. `ready` hears of the address that answers, `changed` of a configuration that
    came into force.

    Raises:
        ConfigError: no token is set.
        OSError: the address can't be listened on.
        WriterSuperseded: another process has taken the log over.
    """
    limits = Limits()
    watch = None if config_file is None else lambda: _watched(system, config_file, limits.check_s, changed)
    run(
        system,
        port=port,
        listening=listening,
        ready=ready,
        also=watch,
        limits=limits,
        patience_s=patience_s,
    )


async def _watched(
    system: SessionSystem, path: Path, every_s: float, changed: Callable[[Config], None]
) -> None:
    """Take a changed file into force. A bad one is refused and the old configuration stays."""
    known = _stamp(path)
    while True:
        await asyncio.sleep(every_s)
        stamp = _stamp(path)
        if stamp == known:
            continue
        known = stamp
        try:
            system.reload(await off_loop(_given, path))
        except ConfigError:
            pass  # told by the system
        else:
            logger.info("the configuration was read again")
            changed(system.config)


def _given(path: Path) -> JsonValue | Path:
    """Return what a file says; one that can't be read is left to the system, which remembers why it refused."""
    try:
        return given_config(path)
    except ConfigError:
        return path


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
