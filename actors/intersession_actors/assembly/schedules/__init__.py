"""Scheduled jobs: watched by the clock, run when they are due, told of."""
