"""Processes that tests start and kill, and what has to be true of what they leave."""
