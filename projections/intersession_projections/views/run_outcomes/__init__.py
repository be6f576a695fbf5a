"""The outcome of each run: its rows, their view, and queries on them."""
