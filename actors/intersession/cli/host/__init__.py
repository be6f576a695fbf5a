"""How a command gets at a log: it reads it, becomes its writer, or asks the process that writes it."""
