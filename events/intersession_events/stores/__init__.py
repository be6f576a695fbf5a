"""Stores: the log on the eventsourcing library's recorders."""
