"""Shared by exchanges, spawns and deliveries: the manager of many small streams, and how exchanges and spawns proceed."""
