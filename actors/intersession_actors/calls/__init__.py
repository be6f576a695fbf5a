"""What agents and doors ask: one service, and the session tools."""
