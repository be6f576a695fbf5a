"""Reconstructs the sessions, exchanges and spawns of an OpenClaw state, with the evidence for each."""
