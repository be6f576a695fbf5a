"""The contents of files that events name: in a folder beside the log, in a table of its schema, or in memory."""
