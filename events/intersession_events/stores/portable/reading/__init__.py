"""Reading a log in any SQL database: the half of a recorder that reads, its events, proven, and how it is followed."""
