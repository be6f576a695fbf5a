"""`intersession serve`: the gateway as a process of its own."""
