"""What stood at a place of a log: sessions, runs, flows, what was open, what was in force. The verb `state` answers it (PLACE-3)."""
