"""What became of each run: its rows, the view that keeps them, and the questions about them."""
