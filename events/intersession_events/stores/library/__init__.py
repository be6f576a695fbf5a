"""What we plug into the eventsourcing library, for any database: mapper, subscription, the frontier of the log."""
