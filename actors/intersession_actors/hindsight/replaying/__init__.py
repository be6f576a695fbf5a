"""Sealed replay: what was recorded, executed again by today's rules and actors with nothing but the recorded inputs (SEAL)."""
