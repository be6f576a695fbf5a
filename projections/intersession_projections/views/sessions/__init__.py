"""The session list and its order, the history of a session, and which thread belongs to which session."""
