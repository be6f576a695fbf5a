"""Facts: what can have happened, and the log that keeps it. Imports nothing of ours, knows no thread of an actor."""
