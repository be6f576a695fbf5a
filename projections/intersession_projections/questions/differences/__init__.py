"""What differs between two runs, a run and its fork, or two places of one: by structure and meaning, not by id or time (DIFF)."""
