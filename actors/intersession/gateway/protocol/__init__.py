"""The WebSocket protocol: frames, a connection, the events of runs, and a client."""
