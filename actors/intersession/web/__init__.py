"""The web debugger: its questions over HTTP, its pages, and a server of its own for a log that is only read. Needs the extra `web`."""
