"""Tells flows and sessions as conversations, for `replay`, `runs` and `demo`."""
