"""The gateway of the process that writes a log, for commands that would otherwise have to be its writer."""

import os
from typing import Any, Final

from intersession.cli.options import Reading
from intersession.cli.reading import store_path, store_url
from intersession_actors.config import load_config
from intersession_actors.errors import ToolRefused
from intersession_actors.extras import imported
from intersession_events.stores.writer_lock import holder_of

TOKEN_VARIABLE: Final = "INTERSESSION_GATEWAY_TOKEN"  # noqa: S105 - the name of a variable


def gateway_beside(reading: Reading) -> Any | None:
    """Return a client of the gateway that the log's writer has; None if there is none, or it is gone.

    Raises:
        ToolRefused: it refused the token, or none is known (`forbidden`).
        MissingExtra: the extra `gateway` is not installed.
    """
    config = load_config(reading.config).config
    holder = holder_of(store_path(store_url(reading, config)))
    if holder is None or holder.gateway is None:
        return None
    token = os.environ.get(TOKEN_VARIABLE) or config.gateway.auth.secret
    client = imported(
        "intersession.gateway.client",
        what="a command beside a gateway",
        library="websockets",
        extra="gateway",
    )
    try:
        return client.GatewayClient(holder.gateway, token or "")
    except ToolRefused as refused:
        if refused.code == "unavailable":
            return None  # it was killed: whoever takes the lock next writes its own address
        hint = f"give its configuration with --config, or its token in ${TOKEN_VARIABLE}"
        raise ToolRefused("forbidden", f"{refused.error}; {hint}") from None
