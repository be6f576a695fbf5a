"""Questions about views and about the log."""
