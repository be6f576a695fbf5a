"""A worker: a process that calls agents for the writer of a log, with whom it speaks through a database or a gateway."""
