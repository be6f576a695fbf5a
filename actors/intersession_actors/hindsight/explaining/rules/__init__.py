"""The rules in words: one for every way in which something can end, fail, wait or be refused. Pure."""
