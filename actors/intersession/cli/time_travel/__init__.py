"""Commands that look at a log at a place of it, and say why it is as it is."""
