"""Causal chains: what each has used, counted in one place, and what code of the host's is called for (LOOP-5)."""
