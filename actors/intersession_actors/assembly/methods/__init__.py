"""The methods, such as `chat.send`: the interface of gateway clients, the command line and a host's own code."""
