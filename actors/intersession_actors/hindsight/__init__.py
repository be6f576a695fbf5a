"""Looking back: the debugger, sealed replay, explanations, and forks that run on."""
