"""Transcripts of other systems: importing them into a log, and writing them out of one."""
