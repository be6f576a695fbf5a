"""Logs on every store that there is, for tests of what a log does whatever store it lies on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.any_log import EVERY_STORE, FILE_OR_POSTGRES, ON_POSTGRES, AnyLog, Place


@pytest.fixture(params=EVERY_STORE)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyLog]:
    """A log that is open to write: in memory, in a file, and with `-m postgres` on a server."""
    with Place(request, tmp_path).open() as log:
        yield log


@pytest.fixture(params=["memory", ON_POSTGRES])
def by_hand(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyLog]:
    """A log without threads: what waits to be written is written when the test says so (`step`)."""
    with Place(request, tmp_path).open(threads=False) as log:
        yield log


@pytest.fixture(params=FILE_OR_POSTGRES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place at which a log can be opened, closed and opened again."""
    return Place(request, tmp_path)
