"""Imports an OpenClaw state directory into a log, and writes transcripts in its format."""
