"""What is allowed, shown and said: pure, but for reading the configuration file."""
