"""Finds the process that writes a log, for commands that would otherwise become the writer."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, Final, TypeAlias

import msgspec

from intersession.cli.host.reading import store_url
from intersession.cli.shell.answer import Reading
from intersession_actors.assembly.control.beside_log import ControlClient
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.host.extras import imported
from intersession_events.basics.errors import ImportFailed, StoreUnavailable
from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.log import Log
from intersession_events.stores.opened import Located, gateway_of, located, writer_of
from intersession_events.transcripts.openclaw.report import ImportReport

Client: TypeAlias = Any  # no door imports another, and what this one needs may be missing
"""The gateway's `GatewayClient`, or the `ControlClient` of a host without one."""

TOKEN_VARIABLE: Final = "INTERSESSION_GATEWAY_TOKEN"  # noqa: S105 - the name of a variable


def host_beside(reading: Reading) -> Client | None:
    """Return a client of the process that writes the log: of its gateway, else of its control socket; None if it has neither.

    Nothing is said to an address that only might be the writer's, and the token is proven, never sent.

    Raises:
        ToolRefused: the gateway does not know the token, or none is given (`forbidden`).
        StoreUnavailable: the writer's lock can't be trusted, or its gateway is not on the loopback.
        MissingExtra: the extra `gateway` is not installed.
        ConnectionError: the process does not answer at its control socket.
    """
    config = load_config(reading.config).config
    address = gateway_of(store_url(reading, config))
    if address is None:
        return _control_of(store_url(reading, config))
    hint = f"give its configuration with --config, or its token in ${TOKEN_VARIABLE}"
    token = known_token(config)
    if not token:
        raise ToolRefused(
            "forbidden", f"the log's writer has a gateway at {address}, whose token is not known; {hint}"
        )
    try:
        return _of_gateway("client").GatewayClient(address, token)
    except ToolRefused as refused:
        if refused.code == "unavailable":
            return None  # it was killed: whoever takes the lock next writes its own address
        raise ToolRefused("forbidden", f"{refused.error}; {hint}") from None


def _control_of(url: str | None) -> ControlClient | None:
    """Return a client of the control socket beside a log with a writer; None if it does not answer."""
    where = located(url)
    holder = writer_of(where)
    if holder is None or holder.host is not None:
        return None
    try:
        return ControlClient(where.place)
    except ToolRefused as refused:
        if refused.code == "unavailable":
            return None
        raise


def tools_beside(log: Located, token: str) -> Client:
    """Return the tools of sessions at the gateway of the process that writes a log, wherever that is when they are called.

    Raises:
        StoreUnavailable: the gateway does not know the token.
        MissingExtra: the extra `gateway` is not installed.
    """

    def addresses() -> tuple[str, ...]:
        address = gateway_of(log.url)
        return () if address is None else (address,)

    line = _of_gateway("line").Line(addresses, token, announced=True)
    try:
        line.open()
    except ToolRefused as refused:
        raise StoreUnavailable(
            f"the log's host has a gateway, which can't be used with this token ({refused.error})"
        ) from None
    return _of_gateway("tools_there").ToolsThere(line)


def known_token(config: Config) -> str | None:
    """Return the token of a command: the environment's, else the configuration's."""
    return os.environ.get(TOKEN_VARIABLE) or config.gateway.auth.secret


def _of_gateway(module: str) -> ModuleType:
    return imported(
        f"intersession.gateway.protocol.{module}",
        what="a command beside a gateway",
        library="websockets",
        extra="gateway",
    )


_POLL_S: Final = 0.2


def import_beside(
    client: Client,
    log: Log,
    method: str,
    params: JsonObject,
    *,
    progress: Callable[[int, int | None], None],
) -> ImportReport:
    """Have a gateway import, and return its report. `log` is the gateway's log, open for reading.

    To stop waiting does not stop the import: the gateway brings it to its end.

    Raises:
        ImportFailed: the source is not what it should be, or has keys that the log has and should be refused.
        StoreUnavailable: the gateway went away or could not write; what was appended stays.
        ToolRefused: the gateway does not let this caller import, or another import is under way.
    """
    before = log.head()
    asking = ThreadPoolExecutor(1)
    try:
        asked = asking.submit(client.call, method, params, timeout=None)
        while not asked.done():
            progress(log.head() - before, None)
            log.wait_for(log.head() + 1, timeout=_POLL_S)
        return msgspec.convert(asked.result(), ImportReport)
    except ToolRefused as refused:
        # For one code and one exit code, it is the same trouble as where the command writes the log itself.
        same = {"import_failed": ImportFailed, "unavailable": StoreUnavailable}.get(refused.code)
        raise refused if same is None else same(refused.error) from None
    finally:
        client.close()
        asking.shutdown()
