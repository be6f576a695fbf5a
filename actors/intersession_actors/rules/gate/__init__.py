"""The one gate for texts and numbers from outside: what is taken, how much of it, and what becomes of the rest."""
