"""The calls of agents and doors: one service, and the session tools."""
