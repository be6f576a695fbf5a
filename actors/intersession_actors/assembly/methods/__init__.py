"""The methods, such as `chat.send`: what clients of the gateway, the command line and a host's own code can ask for."""
