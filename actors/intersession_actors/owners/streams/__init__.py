"""Shared by every owner of a stream: commands and their outcomes, access to the world, and the owner itself."""
