"""The encoding of statements and values for PostgreSQL: by libpq directly where psycopg is slower."""
