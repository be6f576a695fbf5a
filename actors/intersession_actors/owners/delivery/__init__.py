"""The outbox: takes each text to its channel, and records the outcome."""
