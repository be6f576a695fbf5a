"""What is asked of views and of the log."""
