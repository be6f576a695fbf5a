"""How a log is read in any SQL database: the half of a recorder that reads, its events, proven, and who follows it."""
