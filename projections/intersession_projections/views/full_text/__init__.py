"""The view of full text: messages and tool texts by their words. It follows the log in its own time (FIND-1)."""
