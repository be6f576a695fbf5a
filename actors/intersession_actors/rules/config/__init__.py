"""The configuration: its settings, how it is read and checked, and its form without secrets."""
