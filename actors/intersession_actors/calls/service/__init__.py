"""What every door asks: who calls and what it may have, views to read, actors to tell, answers to wait for."""
