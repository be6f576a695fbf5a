"""Agents and channels that other processes call: workers. What these and the writer of the log say to each other, and the writer's side (WORK)."""
