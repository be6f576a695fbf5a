"""Commands that query the whole log."""
