"""The control socket beside a log: commands of the same user ask the process that writes it."""
