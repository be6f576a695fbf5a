"""A copy of a log that is continued: each part is proven as it comes (COPY)."""
