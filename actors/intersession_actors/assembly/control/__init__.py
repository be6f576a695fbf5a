"""The control socket beside a log: how commands of the same user ask the process that writes it."""
