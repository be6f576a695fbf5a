"""What the eventsourcing library is given of ours, for any database: mapper, subscription, how far the log has got."""
