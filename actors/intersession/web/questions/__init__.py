"""What the web debugger's pages ask of a log: each question is a route."""
