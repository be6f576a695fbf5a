"""Scheduled jobs: when they are due, and what becomes of times that passed."""
