"""The actors: each is the one writer of its streams, and decides the events in them."""
