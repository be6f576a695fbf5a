"""Writes an OpenClaw state directory of a log: its sessions, transcripts and sub-agents (EXP-1 to EXP-3)."""
