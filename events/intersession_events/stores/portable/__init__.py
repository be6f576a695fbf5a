"""A log in any SQL database: both halves of a recorder, group commit, appends, the one writer, the reader of events, the views."""
