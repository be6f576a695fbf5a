"""The verbs of the debugger by name, for every door: what each is for, and what it takes and does when it is called."""
