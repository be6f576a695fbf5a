"""What happened, step by step: the timelines of exchanges, spawns, runs and sessions."""
