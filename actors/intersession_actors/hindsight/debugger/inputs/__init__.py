"""The input of an agent, found by the name of its run: rebuilt from the log, or from what an import has. The verb `lens` shows it (LENS)."""
