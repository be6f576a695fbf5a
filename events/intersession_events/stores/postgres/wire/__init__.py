"""How statements and values go to PostgreSQL and come from there, by libpq itself where psycopg takes longer."""

from intersession_events.stores.postgres.wire.pipeline import Answer, Pipeline, forget
from intersession_events.stores.postgres.wire.values import (
    BYTES,
    NUMBER,
    NUMBERS,
    TEXTS,
    TRUTH,
    adapt,
    byte_strings,
    number,
    numbers,
    texts,
    truth,
)

__all__ = [
    "BYTES",
    "NUMBER",
    "NUMBERS",
    "TEXTS",
    "TRUTH",
    "Answer",
    "Pipeline",
    "adapt",
    "byte_strings",
    "forget",
    "number",
    "numbers",
    "texts",
    "truth",
]
