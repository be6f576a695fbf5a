"""Holds on texts of exchanges before they go on: held sessions, and a rule of the host's (LIVE-1)."""
