"""The questions that the web debugger's pages ask: each is a route."""
