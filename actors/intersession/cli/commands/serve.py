"""`intersession serve`: the gateway, in a process of its own, for the agents of a configuration."""

import contextlib
import gc
from pathlib import Path
from socket import socket
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import hosted, store_url
from intersession.cli.shell import Answer, Common, Screen, Store, console_log, use_level
from intersession_actors.agents import configured_agents
from intersession_actors.config import Config, load_config
from intersession_actors.host import imported
from intersession_actors.system import SessionSystem
from intersession_events.plain_json import JsonObject


def serve(
    *,
    config: Annotated[
        Path | None, Parameter(help="The configuration file (JSON5), the original's openclaw.json for one.")
    ] = None,
    store: Store = None,
    port: Annotated[
        int | None,
        Parameter(help="Listen on this port; 0 is any free one. Default: gateway.port, else 18789."),
    ] = None,
    agents: Annotated[
        str | None,
        Parameter(
            help="Who answers, instead of the configured models: module:NAME of a dict of agents, or of a function that "
            "takes the store's URL and returns a SessionSystem."
        ),
    ] = None,
) -> Answer:
    """Serve the session tools over HTTP and WebSocket.

    It says what is configured and what stands still, and prints what goes wrong to standard error, from logging.level on.

    It listens on this machine alone unless gateway.bind says otherwise, and takes nobody without the token of
    gateway.auth (or $INTERSESSION_GATEWAY_TOKEN). The configuration is read again when its file changes. SIGTERM refuses
    new work and gives what runs its time; a second one ends the process at once.
    """
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
            gateway = settings.gateway
            listening = taken.enter_context(
                server.listen(gateway.host, gateway.port if port is None else port)
            )
        if agents is not None:
            system = hosted(common, agents=agents, config=config)
            system.reload(server.with_token(system.config))
            use_level(system.config.logging)
        else:
            made = configured_agents(settings)
            for notice in made.notices:
                screen.note(notice)
            system = SessionSystem(store_url(common, settings), agents=made.agents, config=given)

        def ready(address: str) -> None:
            names = ", ".join(system.status()["agents"]) or "no agents"
            screen.line(f"serving {names} at {address}")
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
                system, config_file=config, port=port, listening=listening, ready=ready, changed=changed
            )
    return Answer(None, lambda _: None)
