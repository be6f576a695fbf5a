"""Writes tables as Parquet files (extra `parquet`), some thousand rows at a time."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Final

from intersession_actors.hindsight.exporting.tables import TABLES, Kind, TableRow
from intersession_actors.running.host.extras import imported
from intersession_events.basics.plain_json import JsonObject
from intersession_projections.copies.openclaw_state.directory import NewDirectory

_ROWS: Final = 2_000


def write_tables(made: NewDirectory, rows: Iterable[TableRow]) -> dict[str, int]:
    """Write a file for each table, `<name>.parquet`, also for one without rows; return how many rows each has.

    Raises:
        MissingExtra: the extra `parquet` is not installed.
        OSError: a file can't be written.
    """
    arrow, parquet = (
        imported(name, what="an export to Parquet", library="pyarrow", extra="parquet")
        for name in ("pyarrow", "pyarrow.parquet")
    )
    kinds: Mapping[Kind, Any] = {  # types of a library without types
        "int": arrow.int64(),
        "text": arrow.string(),
        "bool": arrow.bool_(),
        "time": arrow.timestamp("ms", tz="UTC"),
    }
    counts = dict.fromkeys(TABLES, 0)
    waiting: dict[str, list[JsonObject]] = {name: [] for name in TABLES}
    with ExitStack() as opened:
        schemas = {
            name: arrow.schema([(column, kinds[kind]) for column, kind in columns.items()])
            for name, columns in TABLES.items()
        }
        writers = {
            name: opened.enter_context(
                parquet.ParquetWriter(
                    opened.enter_context(made.file(f"{name}.parquet")), schema, compression="zstd"
                )
            )
            for name, schema in schemas.items()
        }

        def write(name: str) -> None:
            writers[name].write_batch(arrow.RecordBatch.from_pylist(waiting[name], schema=schemas[name]))
            counts[name] += len(waiting[name])
            waiting[name].clear()

        for name, row in rows:
            waiting[name].append(row)
            if len(waiting[name]) == _ROWS:
                write(name)
        for name in TABLES:
            write(name)
    return counts
