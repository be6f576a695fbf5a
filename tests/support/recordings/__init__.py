"""Scenarios recorded on the original: made small, played here, compared, counted."""
