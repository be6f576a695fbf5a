"""Every event in words, the reasons that events name, and the short names of sessions: what all that tells a log reads from."""
