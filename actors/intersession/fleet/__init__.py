"""Many logs: which there are, how each stands; verified side by side, moved, and brought to this version (FLEET)."""
