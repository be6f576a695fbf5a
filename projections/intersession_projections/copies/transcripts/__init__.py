"""Transcripts as files beside the log: one JSONL file for each session id (LIST-5)."""
