"""The queue of calls for workers: tables and functions in the log's schema, asked by its writer and by workers."""
