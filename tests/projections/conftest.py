"""Fixtures for views."""

from collections.abc import Iterator

import pytest

from support.any_log import ON_POSTGRES
from support.story import Story


@pytest.fixture(params=["sqlite", ON_POSTGRES])
def story(request: pytest.FixtureRequest) -> Iterator[Story]:
    """A story in memory, and with `-m postgres` the same on a server."""
    told = Story(":memory:" if request.param == "sqlite" else request.getfixturevalue("postgres_url"))
    yield told
    told.close()
