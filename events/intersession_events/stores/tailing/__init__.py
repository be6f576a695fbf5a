"""Tailed views: projections of the eventsourcing library that follow the log in their own time, so that no append waits for them."""
