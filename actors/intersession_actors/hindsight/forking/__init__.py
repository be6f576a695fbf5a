"""Forks that run on: where a log is cut, which edits follow the cut, and which agents answer there (FORK)."""
