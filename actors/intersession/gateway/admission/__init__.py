"""Who is let in: addresses, credentials, scopes, and the limits of strangers."""
