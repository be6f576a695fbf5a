"""Agents: what a host registers, the turn it is called with, and who calls it."""
