"""The ASGI application: HTTP routes, the event stream, the WebSocket, and the shield before them."""

from intersession.gateway.http.application import asgi_application
from intersession.gateway.http.websocket import EXTENSION

__all__ = ["EXTENSION", "asgi_application"]
