"""Exchanges, spawns and deliveries as rows, for recovery, the tools and the command line."""
