"""The policy: access, sending, spawning, tools, models, and the limits of a chain. Pure."""
