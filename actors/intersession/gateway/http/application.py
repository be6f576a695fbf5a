"""Puts the gateway's parts together: door, routes, and the shield before them."""

from collections.abc import Callable, Mapping

from litestar.types import ASGIApp

from intersession.gateway.admission.credentials import Credentials
from intersession.gateway.admission.limits import Limits
from intersession.gateway.door import Door
from intersession.gateway.http.routes import routes
from intersession.gateway.http.shield import Shield
from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.rules.config.host import Gateway


def asgi_application(
    system: SessionSystem,
    *,
    settings: Callable[[], Gateway] | None = None,
    mounts: Mapping[str, ASGIApp] | None = None,
    limits: Limits | None = None,
    credentials: Credentials | None = None,
) -> Shield:
    """Return the application of a system. Mounted applications that look up tokens share its `credentials`.

    Raises:
        ConfigError: no token is set.
    """
    door = Door(system, settings=settings, limits=limits, credentials=credentials)
    return Shield(door, routes(), mounts or {})
