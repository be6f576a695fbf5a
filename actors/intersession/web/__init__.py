"""The web debugger: its questions over HTTP, its pages, and a server of its own for a read-only log. Needs the extra `web`."""
