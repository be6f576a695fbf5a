"""Tables that are kept with the log."""
