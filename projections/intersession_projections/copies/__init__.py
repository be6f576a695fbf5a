"""What leaves a log, or is found to be taken out of it: transcripts, exports, forks, copies of a text."""
