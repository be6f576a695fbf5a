"""`work`: a worker, which calls agents and channels for the writer of a log that runs elsewhere."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, TypeVar

from cyclopts import Parameter

from intersession.cli.host.hosting import named_agents, named_channels
from intersession.cli.shell.answer import Answer, UsageError
from intersession.cli.shell.run import console_log
from intersession.cli.shell.terminal import Screen
from intersession_actors.rules.config.config import load_config
from intersession_actors.running.host.extras import imported
from intersession_events.stores.url import VARIABLE, is_postgres

T = TypeVar("T")

_WHERE: Final = "give --gateway with the address of its gateway, or --store with its PostgreSQL database"


def work(
    *,
    agent: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    agents: str | None = None,
    channel: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    channels: str | None = None,
    gateway: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    store: str | None = None,
    config: Path | None = None,
    seats: int = 8,
    name: str | None = None,
) -> Answer:
    """Call agents and channels for a writer elsewhere.

    It takes the calls that the writer offers, makes each turn from the log, and does through the writer's gateway what
    the agent asks for. The token in $INTERSESSION_WORKER_TOKEN is that of a credential with the scope worker. SIGTERM
    takes no more calls and gives those under way their time; a second one ends the process at once, and others try them
    again.

    Args:
        agent: The id of an agent; give several. Default: all of --agents; else the configured ones with worker, else all configured ones.
        agents: The agents, instead of the configured models: module:NAME of a dict of agents.
        channel: The name of a channel that the configuration has a URL for, or one of --channels; give several. With channels and without --agent or --agents it calls no agents.
        channels: The channels, instead of configured ones: module:NAME of a dict of channels.
        gateway: The address of the writer's gateway, http://HOST:PORT, or https:// where a proxy before it ends TLS. Give all that the writer may have, with commas; they are tried in turn. Default: the one that the log in --store names.
        store: The log's database, postgresql://…, under a role for workers. Without it calls are taken through the gateway.
        config: The configuration file (JSON5) with models, tools and workspaces of this machine.
        seats: How many calls are made at once.
        name: The worker's name; no two may have the same. Default: the host's, and a part by chance.
    """
    made = imported(
        "intersession.worker.process", what="intersession work", library="websockets", extra="gateway"
    )
    addresses = tuple(one.strip() for given in gateway for one in given.split(",") if one.strip())
    if store is not None and not is_postgres(store):
        raise UsageError(
            f"--store: {store!r} is no PostgreSQL database, and a file has its one writer; {_WHERE}"
        )
    if store is None and not addresses:
        raise UsageError(f"--gateway: where is the log's writer? {_WHERE} (${VARIABLE} is not read for it)")
    settings = load_config(config).config
    screen = Screen()

    def ready(told: str) -> None:
        screen.line(told)
        screen.flush()

    with console_log(settings.logging):
        made.run(
            ready,
            store=store,
            gateway=addresses,
            agents=agent if agents is None else _among("agent", named_agents(agents), agent),
            channels=channel if channels is None else _among("channel", named_channels(channels), channel),
            config=settings,
            seats=seats,
            name=name,
        )
    return Answer(None, lambda _: None)


def _among(what: str, found: Mapping[str, T], wanted: tuple[str, ...]) -> Mapping[str, T]:
    missing = [one for one in wanted if one not in found]
    if missing:
        known = ", ".join(found) or "none"
        raise UsageError(f"--{what}: --{what}s has no {', '.join(missing)}; it has {known}")
    return {one: found[one] for one in wanted} if wanted else found
