"""What of the eventsourcing library is private, and used here all the same: each name is what we take it for."""

import ast
import importlib
import inspect
import pkgutil
import re
import sqlite3
import sys
from collections.abc import Iterator
from functools import cache

import pytest
from eventsourcing.persistence import ConnectionPool
from eventsourcing.sqlite import (
    SQLiteAggregateRecorder,
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteTrackingRecorder,
)

import intersession_events.stores

LIBRARY = "eventsourcing."

METHODS = (
    (SQLiteAggregateRecorder, "_insert_events", ["self", "c", "stored_events", "_"]),
    (SQLiteAggregateRecorder, "_create_table", ["self", "c"]),
    (SQLiteTrackingRecorder, "_insert_tracking", ["self", "c", "tracking"]),
    (SQLiteTrackingRecorder, "_max_tracking_id", ["self", "application_name", "c"]),
    (SQLiteConnectionPool, "_create_connection", ["self"]),
)
ATTRIBUTES = {"_sqlite_conn", "_put_condition", "_in_use", "_closed"}


def classes_on_the_library() -> Iterator[type]:
    for found in pkgutil.walk_packages(intersession_events.stores.__path__, "intersession_events.stores."):
        module = importlib.import_module(found.name)
        for one in vars(module).values():
            if inspect.isclass(one) and one.__module__ == module.__name__ and list(library_bases(one)):
                yield one


def library_bases(one: type) -> Iterator[type]:
    return (base for base in one.__mro__[1:] if base.__module__.startswith(LIBRARY))


@cache
def classes_in(module: str) -> dict[str, ast.ClassDef]:
    """Return the classes that a module writes down, by name: its source is read once."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


@cache
def private_names_in(one: type) -> frozenset[str]:
    """Return the private names that the source of a class defines or asks something for."""
    node = classes_in(one.__module__)[one.__name__]
    asked = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    defined = {each.name for each in ast.walk(node) if isinstance(each, ast.FunctionDef)}
    return frozenset(name for name in asked | defined if name[:1] == "_" != name[1:2])


def private_names_used(one: type) -> frozenset[str]:
    """Return the private names of the library that a class of ours asks for, or overrides."""
    theirs: frozenset[str] = frozenset().union(*map(private_names_in, library_bases(one)))
    return private_names_in(one) & theirs


def test_no_private_name_is_used_beside_those_that_are_held_to_here() -> None:
    used = {name for one in classes_on_the_library() for name in private_names_used(one)}

    assert used == {name for _, name, _ in METHODS} | ATTRIBUTES


@pytest.mark.parametrize(("owner", "name", "parameters"), METHODS)
def test_a_private_method_takes_what_it_took(owner: type, name: str, parameters: list[str]) -> None:
    assert [*inspect.signature(getattr(owner, name)).parameters] == parameters


def test_a_pool_makes_its_connections_by_the_private_method_and_knows_which_are_in_use() -> None:
    made: list[SQLiteConnection] = []

    class Pool(SQLiteConnectionPool):
        def _create_connection(self) -> SQLiteConnection:
            made.append(super()._create_connection())
            return made[-1]

    pool = Pool(db_name=":memory:")
    lent = pool.get_connection()

    assert made == [lent]
    assert isinstance(lent._sqlite_conn, sqlite3.Connection)
    assert pool._in_use == {id(lent): lent}
    with pool._put_condition:
        assert pool._closed is False
    pool.put_connection(lent)
    pool.close()
    assert pool._in_use == {}
    assert pool._closed is True


def test_what_a_pool_closes_is_what_it_has_in_its_private_names() -> None:
    assert {"_in_use", "_put_condition", "_closed"} <= set(
        re.findall(r"self\.(_\w+)", inspect.getsource(ConnectionPool.close))
    )
