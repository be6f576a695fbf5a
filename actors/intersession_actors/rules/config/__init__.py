"""The configuration: its settings, how it is read and checked, and how it is shown without its secrets."""
