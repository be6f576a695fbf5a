"""What is called outside: agents, channels, and the files that an agent hands on."""
