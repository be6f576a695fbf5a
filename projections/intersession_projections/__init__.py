"""Views of the log, for the service, the tools and the doors: read only, and rebuilt from the log at any time."""
