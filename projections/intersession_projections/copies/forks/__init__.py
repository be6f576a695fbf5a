"""Forks: the streams that belong into one, the time that does not count in it, and the summary of each."""
