"""Views that follow the log in their own time, as projections of the eventsourcing library: an append never waits for them."""
