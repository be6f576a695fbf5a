"""Who is beside the writer of a log, in a folder beside its file or in a table of its schema."""
