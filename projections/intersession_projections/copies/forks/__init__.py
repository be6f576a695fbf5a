"""Forks: which streams have to go along, which time counts for nothing, and what there is to be said of those that were made."""
