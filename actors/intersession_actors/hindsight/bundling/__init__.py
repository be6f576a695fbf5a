"""From a question to a bundle: which streams answer it, and what goes with them."""
