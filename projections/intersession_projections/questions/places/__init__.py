"""Places in a log: how they are typed, the position of each, and its description (PLACE)."""
