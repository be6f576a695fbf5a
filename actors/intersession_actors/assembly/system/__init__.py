"""The session system that a host opens: its parts put together, started, recovered and stopped."""
