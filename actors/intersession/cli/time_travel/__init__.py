"""Commands that look at a place of a log, and explain it."""
