"""What is seldom meant in an exchange, a spawn or a run, and how it is found (SMELL-1)."""
