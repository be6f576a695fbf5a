"""The keys of a log that is kept encrypted: wrapped by a master key, in a file beside it; what they encrypt."""
