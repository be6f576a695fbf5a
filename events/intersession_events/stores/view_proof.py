"""Proves views: folds the log anew and compares every row."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import Final, NamedTuple

from intersession_events.basics.progress import Progress
from intersession_events.log.sql import Row
from intersession_events.log.tables import TOUCHED
from intersession_events.log.verifying.report import Finding
from intersession_events.log.views import InlineView
from intersession_events.stores.folding.fold import (
    Fold,
    Layout,
    PlainSql,
    bring,
    layout_of,
    made_in,
    schema_of,
)
from intersession_events.stores.portable.log import PortableLog

_PAGE: Final = 500
_COUNTS: Final = 1
"""The row of an index of text that says how much is in it."""


def views_proven(
    log: PortableLog, views: Sequence[InlineView], progress: Progress | None = None
) -> tuple[list[Finding], list[str]]:
    """Return how the views of a log differ from a fold of its events, and in words what is unproven.

    A view is compared as of the position that it says it has reached. `progress` gets the position and the last one.
    """
    with ExitStack() as stack:
        folds = [stack.enter_context(closing(Fold.of_whole_log(view))) for view in views]
        with log.snapshot() as seen:
            reached = _reached(seen)
        _advance(log, folds, reached, progress)
        findings: list[Finding] = []
        unproven: list[str] = []
        with log.snapshot(views) as seen:
            now = _reached(seen)
            last = max((view.position for view in now.values()), default=0)
            _advance(log, folds, now, None)
            for fold, view in zip(folds, views, strict=True):
                if view.name not in now:
                    there = sorted(schema_of(made_in(seen), layout_of(view).all_tables))
                    if there:
                        told = f"the log says that it has no such view, and has {', '.join(there)}"
                        findings.append(_finding(fold, "inline_views", view.name, told))
                    else:
                        unproven.append(
                            f"What the view {view.name} would hold: the log has no such view yet. A writer makes "
                            "it of the events; a reader makes one beside the log."
                        )
                    continue
                position, shape, touched = now[view.name]
                if shape != view.shape:
                    unproven.append(
                        f"That the view {view.name} holds what the events say: its tables are of shape {_shown(shape)}, "
                        f"this version's of {view.shape}. It is built anew when the log is opened to write."
                    )
                    continue
                if position != fold.position:
                    findings.append(
                        _finding(
                            fold,
                            "inline_views",
                            view.name,
                            f"says position {position}, the log has come to {fold.position}",
                        )
                    )
                    continue
                if touched:
                    told = "somebody else has written into it, or into its position"
                    findings.append(_finding(fold, "inline_views", view.name, told))
                findings += _differences(fold, layout_of(view), seen)
                unproven += _reasons(fold, seen)
            unproven += [
                f"What the view {name} holds: this version has none of that name."
                for name in sorted((now.keys() | _set_aside_by(seen)) - {view.name for view in views})
            ]
        if progress is not None:
            progress(last, last)
    return findings, unproven


def _set_aside_by(seen: sqlite3.Connection) -> set[str]:
    """Return the names of the views that say they could not take something in."""
    found = PlainSql(seen).execute("SELECT DISTINCT CAST(view AS BLOB) FROM set_aside")
    return {bytes(name).decode(errors="replace") for (name,) in found}


class _Reached(NamedTuple):
    """How far a view says that it is, of which shape, and whether it is marked as touched."""

    position: int
    shape: object
    touched: bool


def _reached(seen: sqlite3.Connection) -> dict[str, _Reached]:
    found = PlainSql(seen).execute("SELECT name, position, shape FROM inline_views")
    ((last,),) = PlainSql(seen).execute("SELECT COALESCE(MAX(rowid), 0) FROM stored_events")
    # What was touched says no position any more: it is compared as of the last event.
    return {
        str(_shown(name)): _Reached(position, shape, touched=False)
        if isinstance(position, int) and position != TOUCHED
        else _Reached(last, shape, touched=True)
        for name, position, shape in found
    }


def _advance(
    log: PortableLog, folds: Sequence[Fold], to: Mapping[str, _Reached], progress: Progress | None
) -> None:
    wanted = {fold.name: to[fold.name].position if fold.name in to else 0 for fold in folds}
    bring(folds, lambda after: log.rows(after=after, limit=_PAGE), log.proven, to=wanted, progress=progress)


def _differences(fold: Fold, layout: Layout, seen: sqlite3.Connection) -> Iterator[Finding]:
    there = made_in(seen)
    made, found = dict(layout.schema), dict(schema_of(there, layout.all_tables))
    made.update(layout.marks)
    found.update(layout.marks_in(there))
    for name in sorted(made.keys() | found.keys()):
        if made.get(name, "") != found.get(name, ""):
            was = "is missing" if name not in found else "was added" if name not in made else "is another"
            yield _finding(fold, name, None, f"the table, index or trigger {name} {was}")
    for table in layout.tables:
        if table in found:
            yield from _row_differences(fold, layout, seen, table)
    for name in layout.text_indexes:
        if name in found:
            yield from _entry_differences(fold, seen, name)
    kept = {
        row[0]: row[1:]
        for row in PlainSql(seen).execute(
            "SELECT position, stream, version, topic FROM set_aside WHERE view=?", (fold.name,)
        )
    }
    lost = {one.position: (one.stream, one.version, one.topic) for one in fold.set_aside}
    for position in sorted(kept.keys() | lost.keys()):
        if kept.get(position) != lost.get(position):
            yield _finding(
                fold,
                "set_aside",
                str(position),
                "is not set aside"
                if position not in kept
                else "is set aside, and should not be or otherwise",
            )


def _reasons(fold: Fold, seen: sqlite3.Connection) -> Iterator[str]:
    """Name the events that were set aside for other reasons than today's: by another version, or another program."""
    said: dict[int, bytes] = dict(
        PlainSql(seen).execute(
            "SELECT position, CAST(reason AS BLOB) FROM set_aside WHERE view=?", (fold.name,)
        )
    )
    for one in fold.set_aside:
        if (was := said.get(one.position)) is not None and was != one.reason.encode(errors="replace"):
            yield (
                f"Why the view {fold.name} could not take in position {one.position}: the log has other words for it than "
                f"this version: {_short(_Text(was))}."
            )


class _Text(bytes):
    """Text as it is stored: a foreign write may be invalid, and it sorts as in SQLite."""


def _row_differences(fold: Fold, layout: Layout, seen: sqlite3.Connection, table: str) -> Iterator[Finding]:
    columns, keys = layout.columns[table], layout.keys[table]
    order = [columns.index(name) for name in keys]
    select = f"SELECT {', '.join(columns)} FROM {table} ORDER BY {', '.join(keys)}"  # noqa: S608 - the view's own
    factories = [(one, one.text_factory) for one in (fold.connection, seen)]
    try:
        for one, _ in factories:
            one.text_factory = _Text
        yield from (
            _finding(fold, table, key, problem)
            for key, problem in _merged(
                columns,
                order,
                PlainSql(fold.connection).execute(select),
                PlainSql(seen).execute(select),
                meant=partial(fold.meant, table),
            )
        )
    except sqlite3.Error as error:
        yield _finding(fold, table, None, f"can't be read: {error}")
    finally:
        for one, factory in factories:
            one.text_factory = factory


def _entry_differences(fold: Fold, seen: sqlite3.Connection, name: str) -> Iterator[Finding]:
    """Compare two text indexes: their settings, the entries of each document, and search results."""
    select = f"SELECT term, doc FROM temp.{name}_held"  # noqa: S608 - the view's own
    settings = f"SELECT k, v FROM {name}_config ORDER BY k"  # noqa: S608 - the same
    # How many documents and entries it counts itself; its other rows there depend on how it was filled.
    counted = f"SELECT id, block FROM {name}_data WHERE id={_COUNTS}"  # noqa: S608 - the same
    ones = (fold.connection, seen)
    try:
        for one in ones:
            one.execute(f"CREATE VIRTUAL TABLE temp.{name}_held USING fts5vocab(main, {name}, instance)")
        fold.connection.execute(f"CREATE VIRTUAL TABLE temp.{name}_terms USING fts5vocab(main, {name}, row)")
        for columns, order, statement in (
            (["k", "v"], [0], settings),
            (["id", "block"], [0], counted),
            (["term", "doc"], [0, 1], select),
        ):
            yield from (
                _finding(fold, name, key, problem)
                for key, problem in _merged(
                    columns, order, *(PlainSql(one).execute(statement) for one in ones)
                )
            )
        # An entry is found by where the index says that its page is, which reading all of it in a row does not ask.
        asked = f"SELECT COUNT(*) FROM {name} WHERE {name} MATCH ?"  # noqa: S608 - the same
        for term, documents in PlainSql(fold.connection).execute(f"SELECT term, doc FROM temp.{name}_terms"):  # noqa: S608 - the same
            ((found,),) = PlainSql(seen).execute(asked, (f'"{term}"',))
            if found != documents:
                problem = f"the index finds it in {found} documents, and the events say {documents}"
                yield _finding(fold, name, f"term={term!r}", problem)
    except sqlite3.Error as error:
        yield _finding(fold, name, None, f"can't be read: {error}")
    finally:
        for one in ones:
            for made in ("held", "terms"):
                with suppress(sqlite3.Error):
                    one.execute(f"DROP TABLE IF EXISTS temp.{name}_{made}")


def _merged(
    columns: Sequence[str],
    order: Sequence[int],
    expected: Iterator[Row],
    found: Iterator[Row],
    *,
    meant: Callable[[str, object], object] = lambda _column, value: value,
) -> Iterator[tuple[str, str]]:
    """Walk two tables by their keys at once. Values of a column that `meant` gives the same for are the same."""

    def key(row: Row) -> tuple[tuple[int, object], ...]:
        return tuple(map(_rank, (row[at] for at in order)))

    def named(row: Row) -> str:
        return ", ".join(f"{columns[at]}={_shown(row[at])!r}" for at in order)

    one, other = next(expected, None), next(found, None)
    while one is not None or other is not None:
        if one == other and list(map(type, one or ())) == list(map(type, other or ())):
            one, other = next(expected, None), next(found, None)
        elif other is None or (one is not None and key(one) < key(other)):
            assert one is not None  # noqa: S101 - for the type checker
            yield named(one), "the row is missing"
            one = next(expected, None)
        elif one is None or key(other) < key(one):
            yield named(other), "the row is of no event"
            other = next(found, None)
        else:
            told = [
                f"{column} is {_short(is_now)}, the events say {_short(was)}"
                for column, was, is_now in zip(columns, one, other, strict=True)
                if type(was) is not type(is_now) or meant(column, was) != meant(column, is_now)
            ]
            if told:
                yield named(one), "; ".join(told)
            one, other = next(expected, None), next(found, None)


def _rank(value: object) -> tuple[int, object]:
    """Return what sorts as SQLite sorts values of all kinds."""
    match value:
        case None:
            return 0, 0
        case int() | float():
            return 1, value
        case _Text():
            return 2, bytes(value)
        case _:
            return 3, value


def _shown(value: object) -> object:
    return value.decode(errors="replace") if isinstance(value, _Text) else value


_MOST: Final = 300


def _short(value: object) -> str:
    said = repr(_shown(value))
    return said if len(said) <= _MOST else f"{said[:_MOST]}… ({len(said)} characters)"


def _finding(fold: Fold, table: str, key: str | None, problem: str) -> Finding:
    return Finding(code="view_differs", problem=problem, view=fold.name, table=table, key=key)
