"""What psycopg makes of values where it would make something else than SQLite: texts among bytes, and sums of whole numbers."""

from typing import Any

from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import NumericBinaryLoader

from intersession_events.log import ID_TEXT, IdText


class _IdTextDumper(Dumper):
    """Puts a text into a column of bytes, behind what no id of a UUID's length begins with."""

    format = Format.BINARY
    oid = 17  # bytea

    def dump(self, obj: IdText) -> Buffer:
        return ID_TEXT + obj.encode()


class _WholeLoader(NumericBinaryLoader):
    """Returns whole numbers as such: a sum of big integers is a numeric."""

    def load(self, data: Buffer) -> Any:  # an int where it is one, else the Decimal
        found = super().load(data)
        return int(found) if found == found.to_integral_value() else found


def adapt(connection: Connection[Any]) -> None:  # whatever its rows are
    """Have a connection take and give values as SQLite does."""
    connection.adapters.register_dumper(IdText, _IdTextDumper)
    connection.adapters.register_loader("numeric", _WholeLoader)
