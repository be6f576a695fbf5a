"""Parts of a log that travel: checkpoints, forks, a log that moves to another store."""
