"""Verifies a log: every row hashed again, every chain walked, and in words what cannot be proven."""
