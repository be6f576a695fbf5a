"""The view of words: what was said anywhere, found by the words of it. It follows the log in its own time (FIND-1)."""
