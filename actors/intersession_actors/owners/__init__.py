"""The actors: each is the one writer of its streams, and decides what is appended to them."""
