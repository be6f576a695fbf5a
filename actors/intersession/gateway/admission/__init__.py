"""Admission: addresses, credentials, scopes, and the limits of strangers."""
