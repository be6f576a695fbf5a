"""The original: its client, its state directories."""
