"""The network door: HTTP and the WebSocket protocol that the original's clients speak. Needs the extra `gateway`.

`app(system)` is an ASGI application that a host can mount; `intersession serve` is a process of its own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.running.host.extras import imported
from intersession_events.basics.plain_json import JsonMapping

__all__ = ["app"]


def app(
    system: SessionSystem,
    config: Config | JsonMapping | Path | str | None = None,
    *,
    mounts: Mapping[str, object] | None = None,
) -> Any:  # an ASGI application, whose types are in what may be missing
    """Make the ASGI application of a system's gateway.

    `config` has the `gateway` settings that hold; the system's own if not given. `mounts` are further ASGI applications by
    path prefix, behind the same checks of host, origin and token.

    Raises:
        ConfigError: the configuration was refused, or sets no token.
        MissingExtra: the extra `gateway` is not installed.
    """
    http = imported(
        "intersession.gateway.http.application", what="the gateway", library="litestar", extra="gateway"
    )
    settings = None if config is None else load_config(config).config.gateway
    return http.asgi_application(
        system, settings=None if settings is None else lambda: settings, mounts=mounts or {}
    )
