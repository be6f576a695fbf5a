"""Pages of docs/ that are made of the sources and of the tests, each with the command that writes it."""
