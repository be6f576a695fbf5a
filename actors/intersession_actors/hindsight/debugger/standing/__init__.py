"""The state at a place of a log: sessions, runs, flows, open work, rules in force. The verb `state` answers it (PLACE-3)."""
