"""Data that leaves a log, or is found in it to be removed: transcripts, exports, forks, copies of a text."""
