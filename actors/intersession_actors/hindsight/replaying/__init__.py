"""Sealed replay: the recording is executed again by today's rules and actors, from the recorded inputs alone (SEAL)."""
