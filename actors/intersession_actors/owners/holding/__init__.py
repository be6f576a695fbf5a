"""What holds texts of exchanges before they go on: sessions that are held, and a rule of the host's (LIVE-1)."""
