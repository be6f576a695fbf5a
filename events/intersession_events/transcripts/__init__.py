"""Transcripts of other systems, in and out."""
