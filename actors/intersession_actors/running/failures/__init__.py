"""What goes wrong is told: one log line, a count, and the host's `on_failure`; and how an exception is kept as text."""
