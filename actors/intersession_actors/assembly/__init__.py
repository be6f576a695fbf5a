"""The session system: put together, started, asked by its methods, stopped."""
