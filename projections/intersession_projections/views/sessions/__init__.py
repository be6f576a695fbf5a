"""The session list and its order, the history of a session, and the session of each thread."""
