"""Where words came from, and by which hops they reached others, across sessions (ORIGIN-1)."""
