"""The outbox: takes each text that was decided to its channel, and records how that ended."""
