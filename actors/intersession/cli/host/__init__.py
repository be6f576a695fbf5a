"""How a command uses a log: it reads it, becomes its writer, or asks the process that writes it."""
