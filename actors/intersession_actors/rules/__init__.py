"""The rules of access, disclosure and texts: pure, except for reading the configuration file."""
