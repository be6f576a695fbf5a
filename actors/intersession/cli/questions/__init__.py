"""Commands that ask the whole log."""
