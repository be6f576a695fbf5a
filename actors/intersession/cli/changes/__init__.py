"""The operator's commands: they change sessions and runs, or maintain the log."""
