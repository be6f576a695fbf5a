"""Transcripts as files beside the log: one JSONL file a session id, for whoever reads files (LIST-5)."""
