"""The events that can happen, and the log that keeps them: all other packages import this one, and it imports none of them."""
