"""Agents: what a host registers, the turn it is called with, and the executor that calls it."""
