"""What people would use instead, doing the same: each a script of its own, run in an environment of its own (`contest.py`)."""
