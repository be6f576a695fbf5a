"""Fixtures of a running system."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.running import Booth


@pytest.fixture
def booth(tmp_path: Path) -> Iterator[Booth]:
    with Booth(tmp_path) as opened:
        yield opened
