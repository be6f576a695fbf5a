"""Words erased for good: in a log, in its forks and in the files beside it; what is not reached is named."""
