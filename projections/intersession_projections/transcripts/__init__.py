"""Transcripts as files beside the log: one JSONL file a session id, for whoever reads files (LIST-5)."""

from intersession_projections.transcripts.files import file_name
from intersession_projections.transcripts.mirror import mirror_directory, transcript_mirror

__all__ = ["file_name", "mirror_directory", "transcript_mirror"]
