"""Commands that ask the whole log: one module each, loaded when it is called."""
