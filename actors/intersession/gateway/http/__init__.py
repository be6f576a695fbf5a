"""The ASGI application: HTTP routes, the event stream, the WebSocket, and the shield before them."""
