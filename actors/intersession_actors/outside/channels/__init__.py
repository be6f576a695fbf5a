"""Channels, which show texts to people outside: the ones that come with us, and the caller that the outbox uses."""
