"""Where a text came from, and by which hops it reached others, across sessions (ORIGIN-1)."""
