"""Commands of auditors: what is proven of a log, and with which keys."""
