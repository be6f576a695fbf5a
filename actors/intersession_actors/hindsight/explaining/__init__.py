"""Explains why things ended, were refused or reached nobody: the rule, its inputs, what would have changed it (WHY-2)."""
