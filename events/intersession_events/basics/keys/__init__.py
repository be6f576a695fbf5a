"""Session keys: what a key is, and what callers type and are shown of one (KEY-1 to KEY-8)."""
