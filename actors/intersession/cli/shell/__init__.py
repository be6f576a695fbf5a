"""What all commands share: options, times, answers, failures, the terminal, and the way to an exit code."""
