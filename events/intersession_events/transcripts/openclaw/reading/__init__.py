"""Reads an OpenClaw state directory: its files, their lines, messages, keys and stamps."""
