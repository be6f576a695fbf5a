"""The session tools over MCP: on standard input and output, over HTTP, or relayed to a gateway. Needs the extra `mcp`.

The MCP SDK takes most of a second to import. So there is nothing here that would: `stdio`, `http` and `relay` are loaded one by
one, by who needs them.
"""
