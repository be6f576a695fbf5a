"""The debugger: reads a log at any place, and says why it is as it is. Its verbs are the same at every door (PLACE, WHY)."""
