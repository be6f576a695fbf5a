"""The session tools, one module a tool, and the toolbox through which agents, hosts and doors call them."""
