"""The verbs of the debugger by name, for every door: the purpose of each, its arguments and its function."""
