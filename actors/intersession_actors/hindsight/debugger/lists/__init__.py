"""The lists over the whole log, newest first and in pages: each a verb of the debugger (FIND-2)."""
