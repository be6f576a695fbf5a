"""A run outside of its log: its recording in a file, and the test that replays it."""
