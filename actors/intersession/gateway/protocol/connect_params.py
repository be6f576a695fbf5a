"""The content of a client's first request, `connect`. Most of it has no effect; all that the original sends is accepted."""

import msgspec

from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import ready


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    pass


class ClientInfo(_Strict, frozen=True, kw_only=True):
    """A client's description of itself, without effect."""

    id: str
    version: str
    platform: str
    mode: str
    display_name: str | None = None
    device_family: str | None = None
    model_identifier: str | None = None
    instance_id: str | None = None


class ConnectAuth(_Strict, frozen=True, kw_only=True):
    """A client's credentials. Only `token` or `password` count here, or from this machine `proof` with `nonce`."""

    token: str | None = None
    password: str | None = None
    device_token: str | None = None
    bootstrap_token: str | None = None
    proof: str | None = None
    nonce: str | None = None


@ready
class ConnectParams(_Strict, frozen=True, kw_only=True):
    """The parameters of `connect`."""

    min_protocol: int
    max_protocol: int
    client: ClientInfo
    caps: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    permissions: dict[str, bool] = msgspec.field(default_factory=dict[str, bool])
    path_env: str | None = None
    role: str = "operator"
    scopes: tuple[str, ...] | None = None
    device: JsonObject | None = None
    auth: ConnectAuth | None = None
    locale: str | None = None
    user_agent: str | None = None
    transports: tuple[str, ...] = ()
