"""The one gate for texts and numbers from outside: what is accepted, up to which size, and what happens to the rest."""
