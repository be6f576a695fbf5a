"""Reports of failures: one log line, a count, and the host's `on_failure`; and exceptions as text."""
