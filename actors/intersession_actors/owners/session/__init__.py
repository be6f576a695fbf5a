"""The session actor: the one writer of a session's stream, which queues messages and runs the agent on them."""
