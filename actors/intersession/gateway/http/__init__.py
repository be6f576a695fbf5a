"""The ASGI application: HTTP routes, the event stream, the WebSocket, and the shield before them."""

from intersession.gateway.http.application import asgi_application
from intersession.gateway.http.shield import Refusal
from intersession.gateway.http.websocket import EXTENSION

__all__ = ["EXTENSION", "Refusal", "asgi_application"]
