"""The service behind every door: callers and their rights, views to read, actors to tell, answers to wait for."""
