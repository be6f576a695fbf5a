"""Places in a log: how they are typed, which position each one means, and what it is in words (PLACE)."""
