"""The log in an SQLite file, on the eventsourcing library's recorder: one writer, group commit, readers of their own."""
