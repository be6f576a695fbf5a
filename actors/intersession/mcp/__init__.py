"""The session tools over MCP: on standard input and output, over HTTP, or relayed to a gateway."""
