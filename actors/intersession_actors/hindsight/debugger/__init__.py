"""The debugger: reads a log at any place, and explains it. Its verbs are the same at every door (PLACE, WHY)."""
