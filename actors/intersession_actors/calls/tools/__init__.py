"""The session tools, one module a tool, and the toolbox that an agent, a host and every door calls them with."""
