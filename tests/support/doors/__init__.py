"""The doors as tests use them, and the systems behind: a command line, a gateway, MCP, and all of them at once."""
