"""Doors: the package people import."""
