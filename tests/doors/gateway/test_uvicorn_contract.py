"""What the gateway overrides and uses of litestar, uvicorn, websockets and h11 is as it was when it was tried (C8).

None of it is promised by those projects. A start falls back where a part is gone. When a version changes one of these, look
at what `uvicorn_protocols.py` makes of it, run the tests of slow clients, frames and framing, and write the new digest here:
`python tests/doors/gateway/test_uvicorn_contract.py` prints them all.
"""

import asyncio
import hashlib
import inspect
import tomllib
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import h11
import pytest
import uvicorn
import websockets.protocol
from litestar import Litestar
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from intersession.gateway.admission.limits import Limits
from intersession.gateway.process import server, uvicorn_protocols
from intersession.web.answers import Application
from support.paths import ROOT

OURS = [
    (Application, Litestar),
    (uvicorn_protocols.PatientHttp, H11Protocol),
    (uvicorn_protocols.CappedWebSocket, WebSocketsSansIOProtocol),
    (uvicorn_protocols.ServerConfig, uvicorn.Config),
    (server.Server, uvicorn.Server),
]
"""Our classes, and whose methods they override."""

USED: list[Callable[..., Any]] = [
    FlowControl.pause_writing,
    FlowControl.resume_writing,
    H11Protocol.handle_events,
    H11Protocol.handle_websocket_upgrade,
    H11Protocol.send_400_response,
    H11Protocol.timeout_keep_alive_handler,
    RequestResponseCycle.send,
    WebSocketsSansIOProtocol.handle_events,
    WebSocketsSansIOProtocol.handle_parser_exception,
    WebSocketsSansIOProtocol.stop_keepalive,
    h11.Connection.next_event,
    uvicorn.Server.serve,
    websockets.protocol.Protocol.data_to_send,
    websockets.protocol.Protocol.fail,
    websockets.protocol.Protocol.send_close,
]
"""What we call, or lean on without calling it."""

DIGESTS: dict[str, str] = {
    "litestar.app.Litestar._get_default_plugins": "c7c40d6d9bec4bd9",
    "uvicorn.protocols.http.h11_impl.H11Protocol.__init__": "ad1ed8e837b2db8d",
    "uvicorn.protocols.http.h11_impl.H11Protocol.connection_made": "6efb565ff3d36b91",
    "uvicorn.protocols.http.h11_impl.H11Protocol.data_received": "e03b145518ca44aa",
    "uvicorn.protocols.http.h11_impl.H11Protocol.on_response_complete": "1fbb8f48c6a1afc4",
    "uvicorn.protocols.http.h11_impl.H11Protocol.pause_writing": "17a8fd215d96a13c",
    "uvicorn.protocols.http.h11_impl.H11Protocol.resume_writing": "7844bbaa8cceb1ef",
    "uvicorn.protocols.http.h11_impl.H11Protocol.connection_lost": "dbb688fa2b386000",
    "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol.__init__": "631dcd744eab875f",
    "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol.handle_connect": "fc648c2161ff8e13",
    "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol.handle_cont": "d96fe1479da61beb",
    "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol.handle_ping": "41bcf345d372c55c",
    "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol.send_receive_event_to_app": "a2b10de91477dc1d",
    "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol.pause_writing": "4830f7e0d81f877d",
    "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol.resume_writing": "ef79384e5fff077c",
    "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol.send": "d4919ed760ce9f7b",
    "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol.receive": "1dc0e715390021a1",
    "uvicorn.config.Config.__init__": "98e927ea97a70725",
    "uvicorn.server.Server.__init__": "c150b55284f7511e",
    "uvicorn.server.Server.startup": "2aa1d70a244bfcf2",
    "uvicorn.server.Server.capture_signals": "e1bbcd4770d1c887",
    "uvicorn.protocols.http.flow_control.FlowControl.pause_writing": "93d4a08a9f2da9d6",
    "uvicorn.protocols.http.flow_control.FlowControl.resume_writing": "a343e8b0baf08901",
    "uvicorn.protocols.http.h11_impl.H11Protocol.handle_events": "e63a9d1492e3efe7",
    "uvicorn.protocols.http.h11_impl.H11Protocol.handle_websocket_upgrade": "6f42a029e35aed5c",
    "uvicorn.protocols.http.h11_impl.H11Protocol.send_400_response": "56937b748fc59d92",
    "uvicorn.protocols.http.h11_impl.H11Protocol.timeout_keep_alive_handler": "fcd7338529fe645e",
    "uvicorn.protocols.http.h11_impl.RequestResponseCycle.send": "76b4bcb0998bed0e",
    "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol.handle_events": "b2c9351a5d13493f",
    "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol.handle_parser_exception": "ff5cf13c764fb332",
    "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol.stop_keepalive": "bbb91b997b37b77c",
    "h11._connection.Connection.next_event": "7d3288bcc261c49c",
    "uvicorn.server.Server.serve": "112ef41af52167e3",
    "websockets.protocol.Protocol.data_to_send": "959589a5e74ef26f",
    "websockets.protocol.Protocol.fail": "924ae7075dc75a9d",
    "websockets.protocol.Protocol.send_close": "bc2a998cc8b9a3ac",
}


def overridden() -> list[Callable[..., Any]]:
    """Return the methods of others that our classes override."""
    return [
        getattr(theirs, name)
        for mine, theirs in OURS
        for name, value in vars(mine).items()
        if callable(value)
        and hasattr(theirs, name)
        and getattr(theirs, name) is not getattr(object, name, None)
    ]


def digests() -> dict[str, str]:
    """Return what each of them is now: its name and a digest of its source."""
    return {
        f"{each.__module__}.{each.__qualname__}": hashlib.sha256(
            inspect.getsource(each).encode()
        ).hexdigest()[:16]
        for each in [*overridden(), *USED]
    }


def test_what_is_overridden_and_used_is_as_it_was_when_it_was_tried() -> None:
    assert digests() == DIGESTS


@pytest.mark.parametrize("name", ["litestar", "uvicorn", "websockets", "h11"])
def test_their_versions_are_bounded_and_the_installed_ones_are_within(name: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [needed] = [each for each in extras["gateway"] if each.startswith(name)]
    low, *above = needed.removeprefix(name).removeprefix(">=").split(",")
    installed = tuple(map(int, version(name).split(".")[:3]))

    assert tuple(map(int, low.split("."))) <= installed
    assert above == (["<3"] if name == "litestar" else []), (
        "a bound above keeps hosts from fixes: say why it is known"
    )


class Other(asyncio.Protocol):
    """A version of uvicorn's protocol with other parts."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport


class Ours(Other):
    """What overrides it."""


def test_a_version_with_other_parts_is_served_with_its_own_protocol_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    parts = ["transport", "connection_made", "handle_ping", "read_paused"]

    assert uvicorn_protocols.parts_gone(Other, parts) == ["handle_ping", "read_paused"]
    assert uvicorn_protocols.own_or_theirs(Ours, Other, parts) is Other
    assert "since it has no handle_ping, read_paused any more" in caplog.text
    assert uvicorn_protocols.own_or_theirs(Ours, Other, parts[:2]) is Ours


def test_the_versions_that_are_installed_are_served_with_our_protocols() -> None:
    config = uvicorn_protocols.ServerConfig(Litestar([]), Limits())

    assert config.http is uvicorn_protocols.PatientHttp
    assert config.ws is uvicorn_protocols.CappedWebSocket


def test_what_is_read_of_their_objects_is_there() -> None:
    """Attributes have no source of their own: each must be set in the constructor, or be a part of the class."""
    names = {
        H11Protocol: {"conn", "connections", "cycle", "logger", "loop", "timeout_keep_alive_task", "transport"},
        WebSocketsSansIOProtocol: {
            "close_sent", "conn", "curr_msg_data_type", "frames", "logger", "loop", "queue", "read_paused", "transport",
        },
    }  # fmt: skip
    for kind, wanted in names.items():
        source = "".join(inspect.getsource(getattr(kind, name)) for name in ("__init__", "connection_made"))
        assert {name for name in wanted if f"self.{name}" not in source} <= set(vars(kind)) | {
            "curr_msg_data_type"
        }
    assert "max_message_size" in inspect.getsource(websockets.protocol.Protocol.__init__)


if __name__ == "__main__":
    for each, digest in digests().items():
        print(f'    "{each}": "{digest}",')  # noqa: T201 - to be copied
