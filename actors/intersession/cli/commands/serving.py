"""`intersession serve` and `mcp`: the gateway in a process of its own, and a session's tools for an MCP client."""

import contextlib
import errno
import gc
import logging
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from socket import socket
from types import ModuleType
from typing import Final

from intersession.cli.host.beside import TOKEN_VARIABLE, Client, host_beside, known_token, tools_beside
from intersession.cli.host.bundles import files_into
from intersession.cli.host.hosting import forking_beside, hosted, making, operator_of
from intersession.cli.host.reading import key_of, reader_of, store_url
from intersession.cli.shell.answer import Agents, Answer, Common, ConfigFile, Reading, Store, UsageError
from intersession.cli.shell.run import console_log, use_level
from intersession.cli.shell.terminal import Screen
from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.outside.agents.configured import configured_agents
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.errors import ConfigError
from intersession_actors.running.host.extras import imported
from intersession_events.basics.errors import StoreLocked, StoreUnavailable
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.stores.keys.source import Encryption
from intersession_events.stores.opened import Located, gateway_of, located
from intersession_events.stores.standby import when_free

logger = logging.getLogger("intersession.config")

_PATIENCE_S: Final = 15.0
"""How long one that took a log over waits for its address, which the writer before may keep while it ends."""


def serve(
    *,
    config: Path | None = None,
    store: Store = None,
    port: int | None = None,
    agents: str | None = None,
    standby: bool = False,
    follow: bool = False,
    writer: str | None = None,
) -> Answer:
    """Serve the session tools over HTTP and WebSocket.

    It says what is configured and what stands still, and prints what goes wrong to standard error, from logging.level on.

    It listens on this machine alone unless gateway.bind says otherwise, and takes nobody without the token of
    gateway.auth (or $INTERSESSION_GATEWAY_TOKEN). The configuration is read again when its file changes. SIGTERM refuses
    new work and gives what runs its time; a second one ends the process at once.

    With --standby it waits while another process writes the log, and serves once that is gone. One that is taken over itself
    ends with exit code 3.

    Args:
        config: The configuration file (JSON5), the original's openclaw.json for one.
        port: Listen on this port; 0 is any free one. Default: gateway.port, else 18789.
        agents: The agents, instead of the configured models: module:NAME of a dict of agents, or of a function that takes the store's URL and returns a SessionSystem.
        standby: Wait for the log, if another process writes it.
        follow: Serve beside the process that writes the log: read the log here, and hand on to its gateway what writes, with the token of the credential that has the scope "door".
        writer: With --follow, the address of the writer's gateway, such as https://sessions.example. Default: what the log says.
    """
    _check_follower(follow, writer, agents=agents, standby=standby)
    screen = Screen()
    server = imported(
        "intersession.gateway.process", what="intersession serve", library="litestar", extra="gateway"
    )
    given: JsonObject = server.given_config(config)
    common = Common(store=store)
    settings = load_config(given).config
    with console_log(settings.logging), contextlib.ExitStack() as taken:
        listening: socket | None = None
        if agents is None or config is not None:
            # What would be refused is refused before a log is made or touched.
            server.refuse_open_door(settings)
            listening = _listening(server, settings, port, standby=standby)
            if listening is not None:
                taken.enter_context(listening)
        url = store_url(common, settings)
        latest = partial(_latest, server, config, given) if standby else lambda: given
        make: Callable[[], SessionSystem]
        if follow:
            make = partial(server.following, url, config=given, writer=writer)
        elif agents is not None:
            make = partial(
                _with_agents,
                server,
                making(common, agents=agents, config=config),
                None if config is None else latest,
            )
        else:
            configured_agents(settings)  # so that a standby has imported what they need
            make = partial(_with_models, screen, url, latest)
        system = _when_free(located(url), make, settings.encryption.wanted) if standby else make()
        if system is None:
            return Answer(None, lambda _: None)

        def ready(address: str) -> None:
            screen.line(f"{server.headline(system)} at {address}")
            for line in server.startup_lines(system, address, config_file=config):
                screen.line(f"  {line}")
            screen.flush()
            # What is there now stays for good. Left out of Python's search for garbage, it no longer holds up each
            # answer that is given during one, for some 60 ms.
            gc.freeze()

        def changed(in_force: Config) -> None:
            use_level(in_force.logging)

        with system:
            server.serve(
                system,
                config_file=config,
                port=port,
                listening=listening,
                ready=ready,
                changed=changed,
                patience_s=_PATIENCE_S if standby else 0.0,
            )
    return Answer(None, lambda _: None)


def _latest(server: ModuleType, config: Path | None, given: JsonObject) -> JsonObject:
    """Return the configuration as it is after a wait; as it was read before, where it would be refused now."""
    try:
        now: JsonObject = server.given_config(config)
        load_config(now)
    except ConfigError as error:
        logger.warning("the configuration is refused, that of the start is used: %s", error)
        return given
    return now


def _with_models(screen: Screen, url: str | None, latest: Callable[[], JsonObject]) -> SessionSystem:
    """Return a system of the configured models."""
    given = latest()
    made = configured_agents(load_config(given).config)
    for notice in made.notices:
        screen.note(notice)
    return SessionSystem(url, agents=made.agents, config=given)


def _with_agents(
    server: ModuleType, make: Callable[[], SessionSystem], latest: Callable[[], JsonObject] | None
) -> SessionSystem:
    """Return a system of a host's own agents; its configuration is the `latest` one, if the command was given one."""
    system = make()
    try:
        system.reload(server.with_token(system.config) if latest is None else latest())
    except BaseException:
        system.close()
        raise
    use_level(system.config.logging)
    return system


def _check_follower(follow: bool, writer: str | None, *, agents: str | None, standby: bool) -> None:
    """Refuse options that don't go with those of a door."""
    if writer is not None and not follow:
        raise UsageError("--writer: it goes with --follow, give that as well")
    if writer is not None and not writer.startswith(("http://", "https://")):
        raise UsageError(f"--writer: {writer!r} is no address; give http:// or https://, a host, and a port")
    if follow and agents is not None:
        raise UsageError("--follow: agents answer where the log is written, leave --agents out")
    if follow and standby:
        raise UsageError("--follow: a door never writes the log, leave --standby out")


def _listening(server: ModuleType, settings: Config, port: int | None, *, standby: bool) -> socket | None:
    """Take the address of a gateway. A standby only looks whether it can be had: the writer before may still have it."""
    gateway = settings.gateway
    try:
        listening: socket = server.listen(gateway.host, gateway.port if port is None else port)
    except OSError as error:
        if not standby or error.errno != errno.EADDRINUSE:
            raise
        return None
    if not standby:
        return listening
    listening.close()
    return None


def _when_free(
    where: Located, make: Callable[[], SessionSystem], encryption: Encryption | None
) -> SessionSystem | None:
    """Return a system once its log has no writer; None if a SIGTERM comes before."""
    stopping = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        stopping.set()

    before = signal.signal(signal.SIGTERM, stop)
    try:
        system = when_free(where, make, stopping=stopping, encryption=encryption)
    finally:
        signal.signal(signal.SIGTERM, before)
    if system is not None and stopping.is_set():
        system.close()
        return None
    return system


def mcp(
    *,
    as_session: str | None = None,
    debug: bool = False,
    allow_hold: bool = False,
    allow_fork: bool = False,
    allow_bundle: Path | None = None,
    agents: Agents = None,
    config: ConfigFile = None,
    store: Store = None,
) -> Answer:
    """Give the session tools to an MCP client.

    The client sees and reaches what its session may, and no more. The command is the log's writer until the client
    closes its end; messages to agents that are not here wait for a host that has them. Where the log has a host, its tools
    are served: with the token in $INTERSESSION_GATEWAY_TOKEN, else the configuration's, if it has a gateway.

    Args:
        as_session: The session that the client is: its key in any form, or its session id. Required without --debug.
        debug: Instead of the session tools give those that read the log at any place: state and so on, which change nothing. What they show is what --as-session may see, everything without it.
        allow_hold: With --debug, give the operator's tools hold and release as well, which change what goes on.
        allow_fork: With --debug, give the operator's tools fork and forks as well: they make logs of their own beside the log, and have agents answer in them that the configuration has.
        allow_bundle: With --debug, give the operator's tools bundle and export as well: they write bundles and exports into this folder.
    """
    if debug:
        if agents is not None:
            raise UsageError("--agents: not needed for reading alone, leave it or --debug out")
        if allow_hold and as_session is not None:
            raise UsageError("--allow-hold: holds are the operator's, leave it or --as-session out")
        if allow_fork and as_session is not None:
            raise UsageError("--allow-fork: forks are the operator's, leave it or --as-session out")
        if allow_bundle is not None and as_session is not None:
            raise UsageError("--allow-bundle: bundles are the operator's, leave it or --as-session out")
        if allow_bundle is not None and not allow_bundle.is_dir():
            raise UsageError(f"--allow-bundle: {allow_bundle} is no folder, make it first")
        return _debugging(
            as_session,
            Reading(store=store, config=config),
            holds=allow_hold,
            forks=allow_fork,
            bundles=allow_bundle,
        )
    if allow_hold or allow_fork or allow_bundle is not None:
        option = "--allow-hold" if allow_hold else "--allow-fork" if allow_fork else "--allow-bundle"
        raise UsageError(f"{option}: it goes with --debug, give that as well")
    if as_session is None:
        raise UsageError("--as-session: required, give the session that the client is")
    stdio = _mcp("stdio")
    with stdio.claimed_wire() as wire:
        match _host(Common(store=store), agents, config):
            case SessionSystem() as system:
                with system:
                    stdio.serve_stdio(
                        system, key_of(system.service.reader, as_session, field="--as-session"), wire
                    )
            case beside:
                with reader_of(Reading(store=store, config=config)) as reading:
                    key = key_of(reading, as_session, field="--as-session")
                stdio.serve_stdio(beside, key, wire)
    return Answer(None, lambda _: None)


def _mcp(module: str) -> ModuleType:
    return imported(f"intersession.mcp.{module}", what="intersession mcp", library="the MCP SDK", extra="mcp")


def _debugging(
    as_session: str | None, reading: Reading, *, holds: bool, forks: bool, bundles: Path | None
) -> Answer:
    debugging = _mcp("debugging")
    with debugging.claimed_wire() as wire, reader_of(reading) as reader:
        everything = View(reader)
        key = None if as_session is None else everything.session(as_session, field="--as-session")
        view = everything if key is None else View(reader, reader.requester(key)).hiding()

        def operate(method: str, params: JsonMapping) -> JsonObject:
            with operator_of(reading) as operator:
                return operator.call(method, params)

        with forking_beside(reader, reading) if forks else contextlib.nullcontext() as fork:
            debugging.debug_stdio(
                Debugger(view),
                wire,
                operate=operate if holds else None,
                fork=fork,
                bundle=None if bundles is None else files_into(reader, bundles),
            )
    return Answer(None, lambda _: None)


def _host(common: Common, agents: str | None, config: Path | None) -> SessionSystem | Client:
    """Become the log's host, or return what gives the tools of the one that it has."""
    try:
        return hosted(common, agents=agents, config=config)
    except StoreLocked as locked:
        where = located(store_url(common, load_config(config).config))
        address = gateway_of(where.url)
        if address is None:
            beside = host_beside(Reading(store=common.store, config=config))
            if beside is None:
                raise
            return beside
        token = known_token(load_config(config).config)
        if not token:
            raise StoreUnavailable(
                f"{locked.path} has a host with a gateway at {address}; put its token into {TOKEN_VARIABLE}"
            ) from locked
        return tools_beside(where, token)
