"""Facts, and the log that keeps them: the package that all others stand on, and that imports none of them."""
