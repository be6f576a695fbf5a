"""Who is called: agents, channels, and the files that an agent hands on."""
