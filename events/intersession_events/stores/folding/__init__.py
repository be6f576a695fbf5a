"""Views folded anew, in a temporary database: to be compared with those of a log, or to take their place."""
