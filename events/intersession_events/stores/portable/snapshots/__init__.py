"""Snapshots of states, on the eventsourcing library's snapshot store: a recorder, a mapper, and folding from a snapshot."""
