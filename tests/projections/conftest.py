"""Fixtures for views."""

from collections.abc import Iterator

import pytest

from support.story import Story


@pytest.fixture
def story() -> Iterator[Story]:
    told = Story()
    yield told
    told.close()
