"""Forks: a part of a log, as it stood at a place, copied into a file that is a log of its own and can be proven."""
