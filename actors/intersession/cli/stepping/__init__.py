"""Stepping through a run in the terminal: forwards and back, with what everybody saw (extra `tui`)."""
