"""Tables that are stored with the log."""
