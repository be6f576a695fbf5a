"""The session tools over MCP: on standard input and output, over HTTP, or relayed to a gateway. Needs the extra `mcp`.

The MCP SDK takes most of a second to import. So this package imports none of its modules: a caller imports `stdio`, `http` or
`relay`, whichever it needs.
"""
