"""Finds the sessions, exchanges and spawns of an OpenClaw state again, and says on what evidence."""
