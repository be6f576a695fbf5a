"""Each recorded append, and each judgement of a door, decided again from its own decision record."""
