"""How statements and values go to PostgreSQL and come from there, by libpq itself where psycopg takes longer."""
