"""Channels, which show texts to people outside: the built-in ones, and the caller that the outbox uses."""
