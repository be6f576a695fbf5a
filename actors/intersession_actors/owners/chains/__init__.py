"""Causal chains: the usage of each, counted in one place, and the cause of calls by the host's code (LOOP-5)."""
